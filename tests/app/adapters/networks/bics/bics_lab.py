"""A lab whose links run on the scripted BICS, over real sockets, through the real container."""

from collections import Counter
from collections.abc import Sequence
from uuid import UUID

import msgspec

from domain.links.esim import Esim
from domain.links.link import Link, Stage
from projections.audit.auditor import check_log
from tests.installation import Installation, Process
from tests.support.providers import bics
from tests.support.providers.bics import BicsServer
from tests.workers.link_checks import Books, check_money
from tests.workers.link_lab import DEPOSIT, PRICE, Lab
from tests.workers.places import watch_commits, watch_reads

SIMS = 40


class BicsLab(Lab):
    """Drives the sagas as `Lab` does; only the clock is the test's own, also at BICS."""

    def __init__(self, installation: Installation, server: BicsServer) -> None:
        self.server = server
        installation.environment |= environment_of(server)
        super().__init__(installation)
        server.clock = self.clock

    def _begin(self, process: Process) -> None:
        process.publisher = self
        watch_commits(process, self.commits)
        watch_reads(process, self.reads)
        self.process = process

    def other_process(self) -> Process:
        """Open the files as another process would, which runs beside this one."""
        return self.installation.process(self.clock)

    def plan(
        self, provider_plan_id: str = "eu-1", price: str = PRICE, sponsors: Sequence[str] = ()
    ) -> UUID:
        """Offer a plan of BICS; return its id."""
        plan_id = super().plan(provider_plan_id, price, sponsors or [bics.SPONSORS[0]])
        terms = msgspec.structs.replace(self._plans[plan_id], network="bics")
        self._plans[plan_id] = terms
        return plan_id

    def check(self) -> None:
        """Expect that all has ended, and that log, money and BICS's own ledger agree."""
        books = Books(self.process.log)
        links = books.every(Link)
        assert {link.stage for link in links} <= {Stage.ACTIVE, Stage.ENDED}
        assert all(link.open_change is None for link in links)
        check_money(self, links, books.events, DEPOSIT)
        check_ledger(self.server, books)
        assert check_log(self.process.log).failures == []


def check_ledger(server: BicsServer, books: Books) -> None:
    """Expect that what BICS has sold is on active links, each on its eSIM, and nothing else."""
    active = {
        str(link.id): link
        for link in books.every(Link)
        if link.stage is Stage.ACTIVE and link.requested.plan.network == "bics"
    }
    delivered = Counter(
        (name, each.plan.provider_plan_id)
        for name, link in active.items()
        for each in link.current_activations
    )
    left = {each.addon_id for each in books.events if isinstance(each, Link.PlanLeftOver)}
    sold = Counter(
        (each.name, each.plan_id) for each in server.unpaid() if str(each.unique_id) not in left
    )
    assert sold == delivered, _told(books, sold, delivered)
    there = {each.name: each.iccid for each in server.endpoints.values()}
    assert there == {name: link.iccid for name, link in active.items()}
    held = {link.iccid for link in active.values()}
    esims = [esim for esim in books.every(Esim) if esim.iccid in server.sims]
    ended = {link.iccid for link in books.every(Link) if link.ended is not None}
    assert {esim.iccid for esim in esims if esim.link_id is not None} == held | ended
    assert {sim.iccid for sim in server.sims.values() if sim.endpoint_id is not None} == held


def _told(books: Books, sold: Counter[tuple[str, str]], delivered: Counter[tuple[str, str]]) -> str:
    """Return what BICS has sold too much, what too little, and all events of these links."""
    more, less = sold - delivered, delivered - sold
    names = {name for name, _ in more | less}
    lines = [f"sold, and not on a link: {more}", f"on a link, and not sold: {less}"]
    lines += [
        f"{event.timestamp} {type(event).__qualname__} {vars(event)}"
        for event in books.events
        if {str(event.originator_id), str(getattr(event, "link_id", ""))} & names
    ]
    return "\n".join(lines)


def environment_of(server: BicsServer) -> dict[str, str]:
    """Return the settings of an installation that sells on this account."""
    return {
        "NETWORK_PROVIDER": "bics",
        "SANDBOX": "false",
        "NETWORK_BASE_PLAN": bics.BASE_PLAN,
        "BICS_URL": server.url,
        "BICS_USERNAME": bics.USERNAME,
        "BICS_PASSWORD": bics.PASSWORD,
        "BICS_ROAMING_PROFILE": bics.ROAMING_PROFILE,
        "BICS_APN_GROUP": bics.APN_GROUP,
    }
