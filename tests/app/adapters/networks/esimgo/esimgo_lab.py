"""What has to be true between our log and the books of the scripted eSIM Go."""

from collections import Counter

from domain.links.link import Link, Stage
from domain.links.lost_order import LostOrder
from tests.support.providers.esimgo import EsimGoServer
from tests.workers.link_checks import Books


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
