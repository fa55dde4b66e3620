"""What has to be true between our log and the ledger of the scripted BICS."""

from collections import Counter

from domain.links.esim import Esim
from domain.links.link import Link, Stage
from tests.support.providers import bics
from tests.support.providers.bics import BicsServer
from tests.workers.link_checks import Books


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
