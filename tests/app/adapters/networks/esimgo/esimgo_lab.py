"""A lab whose links run on the scripted eSIM Go, over real sockets, through the real container."""

from collections import Counter
from collections.abc import Sequence
from datetime import timedelta
from typing import Any
from uuid import UUID

from msgspec.structs import replace

from domain.cost import Cost
from domain.links.link import Link, Stage
from domain.links.lost_order import LostOrder
from domain.links.plan_change import PlanChange
from projections.audit.auditor import check_log
from tests.installation import PATIENCE_S, Installation, Process, wait_until
from tests.support.providers.esimgo import KEY, EsimGoServer
from tests.workers.link_checks import Books, check_money
from tests.workers.link_lab import DEPOSIT, PRICE, Lab
from tests.workers.places import watch_commits, watch_reads

# First like the sweep, within the deadline of a request; then so that ten minutes, after which an
# order is settled, and an hour, for which an outage is waited for, are soon over.
TICKS = (*[timedelta(seconds=2)] * 12, *[timedelta(seconds=30)] * 150)


class EsimGoLab(Lab):
    """Drives the sagas as `Lab` does; only the clock is the test's own, also at eSIM Go."""

    name = "esimgo"

    def __init__(self, installation: Installation, server: Any) -> None:
        self.server = server
        own = {"NETWORK_PROVIDER": self.name, "SANDBOX": "false"}
        installation.environment |= {**own, **self.settings()}
        super().__init__(installation)
        server.clock = self.clock
        self.process.networks.of(self.process.networks.names[0]).probe(
            timeout_s=PATIENCE_S
        )  # It loads the client and connects.

    def settings(self) -> dict[str, str]:
        """Return the settings of the network."""
        return {
            "ESIMGO_URL": self.server.url,
            "ESIMGO_API_KEY": KEY,
            "ESIMGO_REFUNDS": "true" if self.server.refunds else "false",
        }

    def _begin(self, process: Process) -> None:
        process.publisher = self
        watch_commits(process, self.commits)
        watch_reads(process, self.reads)
        self.process = process

    def plan(
        self, provider_plan_id: str = "esim_1GB", price: str = PRICE, sponsors: Sequence[str] = ()
    ) -> UUID:
        """Offer a bundle of eSIM Go; return the id of its plan."""
        self.server.offer(provider_plan_id)
        plan_id = super().plan(provider_plan_id, price, sponsors)
        cost = Cost(2_280_000, "USD", estimated=True)
        self._plans[plan_id] = replace(self._plans[plan_id], network=self.name, cost=cost)
        return plan_id

    def create(self, provider_plan_id: str = "esim_1GB", price: str = PRICE) -> Link:
        """Ask for a link and let it be worked on."""
        return super().create(provider_plan_id, price)

    def settle(self) -> None:
        """Let late effects come, then time pass and the sweep do its work, to the end."""
        begun = (Link.OrderRequested, PlanChange.PlanAdditionStarted)
        intents = sum(isinstance(each, begun) for each in self.books.events)
        wait_until(lambda: len(self.server.asked("order")) >= intents)
        self.server.heal()
        wait_until(lambda: self.server.is_idle)
        for tick in TICKS:
            self.sweep()
            if not self.unfinished():
                return
            self.clock.now += tick
        raise AssertionError(self.unfinished())

    @property
    def books(self) -> Books:
        return Books(self.process.log)

    def check(self, strays: int = 0) -> None:
        """Expect that all has ended, and that log, money and eSIM Go's own books agree.

        `strays`: what eSIM Go may have sold twice by itself; nobody here can know of it.
        """
        books = self.books
        links = books.every(Link)
        assert {link.stage for link in links} <= {Stage.ACTIVE, Stage.ENDED}
        assert all(link.open_change is None for link in links)
        check_money(self, links, books.events, DEPOSIT)
        self.check_sales(books, strays)
        assert check_log(self.process.log).failures == []

    def check_sales(self, books: Books, strays: int) -> None:
        """Expect that the network's own books agree."""
        check_sales(self.server, books, strays)


def check_sales(server: EsimGoServer, books: Books, strays: int = 0) -> None:
    """Expect that what was sold and not given back is on an active link, or is an incident."""
    delivered = Counter(
        (link.iccid, each.plan.provider_plan_id)
        for link in books.every(Link)
        if link.stage is Stage.ACTIVE and link.requested.plan.network == "esimgo"
        for each in link.current_activations
    )
    kept = [sale for sale in server.sales if not sale.given_back]
    incidents = left_over(books, "esimgo")
    assert incidents <= {sale.reference for sale in kept}
    sold = Counter((s.iccid, s.offer.name) for s in kept if s.reference not in incidents)
    removed = Counter(
        (esim.iccid, put.offer.name)
        for esim in server.esims.values()
        for put in esim.puts
        if put.revoked
    )
    given = Counter((s.iccid, s.offer.name) for s in server.sales if s.given_back)
    surplus = sold - (removed - given) - delivered
    assert delivered <= sold
    assert surplus.total() <= strays, surplus


def left_over(books: Books, network: str) -> set[str]:
    """Return the references of a network's orders that were shown as incidents."""
    return {
        each.order_reference
        for each in books.events
        if isinstance(each, LostOrder.LeftOver) and each.plan.network == network
    }
