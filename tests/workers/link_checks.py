"""What has to be true of all links, their money and the network once nothing is left to do."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, TypeVar
from uuid import UUID

from domain.accounts.wallet import Wallet
from domain.links.esim import Esim
from domain.links.link import Link, Stage
from domain.links.lost_order import LostOrder
from domain.links.network import Endpoint
from domain.links.plan_change import PlanChange
from domain.log.aggregate import Event, Root
from domain.log.log import Log
from domain.money import parse_amount
from projections.audit.auditor import check_log

if TYPE_CHECKING:
    from tests.order_network import Bought, OrderBook
    from tests.workers.link_lab import Lab

DEPOSIT = "500.00"
EVENTS_MAX = 100_000

R = TypeVar("R", bound=Root)


class Books:
    """Every event of a log, and every aggregate that they tell of."""

    def __init__(self, log: Log) -> None:
        self._log = log
        self.events: list[Event] = [each.event for each in log.read(0, EVENTS_MAX)]

    def every(self, kind: type[R]) -> list[R]:
        own = (each.originator_id for each in self.events if isinstance(each, kind.Event))
        return [self._log.get(kind, each) for each in dict.fromkeys(own)]

    def get(self, kind: type[R], stream_id: UUID) -> R:
        return self._log.get(kind, stream_id)

    def entries(self, of: type[Wallet.Moved], reference: str) -> list[int]:
        """Return the amounts that were booked for something."""
        return [
            each.amount_micros
            for each in self.events
            if isinstance(each, of) and each.reference.id == reference
        ]


def check(lab: "Lab", deposit: str = DEPOSIT) -> None:
    """Expect that everything has ended, and that log, money and network agree."""
    books = Books(lab.process.log)
    links = books.every(Link)
    for link in links:
        assert link.stage in {Stage.ACTIVE, Stage.ENDED}, link.stage
        assert (link.open_call, link.open_change) == (None, None)
        assert link.lpa is not None or not link.is_live
    assert all(change.finished_at for change in books.every(PlanChange))
    check_money(lab, links, books.events, deposit)
    check_esims(lab, links, books)
    check_network(lab, [link for link in links if link.stage is Stage.ACTIVE])
    assert check_log(lab.process.log).failures == []


def check_money(lab: "Lab", links: list[Link], events: list[Event], deposit: str) -> None:
    """The organization has paid for each plan that came onto a link, and for nothing else."""
    bought = [link for link in links if not is_cancelled(link)]
    kept = sum(each.plan.price_micros for link in bought for each in link.activations.values())
    assert lab.wallet.balance_micros == parse_amount(deposit) - kept
    charges = {e.transaction_id: e for e in events if isinstance(e, Wallet.Charged)}
    refunds = [e for e in events if isinstance(e, Wallet.Refunded)]
    assert len({refund.charge_id for refund in refunds}) == len(refunds)
    for refund in refunds:
        charge = charges[refund.charge_id]
        assert (refund.amount_micros, refund.reference) == (charge.amount_micros, charge.reference)
    for link in links:
        paid = [c for c in charges.values() if c.reference.id == str(link.id)]
        back = [r for r in refunds if r.reference.id == str(link.id)]
        is_back = link.failure is not None or is_cancelled(link)
        assert len(back) == (len(paid) if is_back else 0)


def is_cancelled(link: Link) -> bool:
    return link.ended is not None and link.ended.reason == "cancelled"


def check_esims(lab: "Lab", links: list[Link], books: Books) -> None:
    """A link holds its eSIM for ever; one that has failed holds none, nowhere."""
    held = {link.iccid: link.id for link in links if link.is_visible}
    assert {e.iccid: e.link_id for e in books.every(Esim) if e.link_id is not None} == held
    assert {iccid for iccid, is_free in stock(lab) if not is_free} == set(held)


def check_network(lab: "Lab", active: list[Link]) -> None:
    """Each link has its one endpoint and on it exactly its plans; nothing else is there."""
    there = {endpoint.endpoint_id: endpoint for endpoint in endpoints(lab)}
    assert len(there) == len(active)
    for link in active:
        assert link.endpoint_id is not None
        endpoint = there[link.endpoint_id]
        assert (endpoint.iccid, endpoint.reference) == (link.iccid, str(link.id))
        addons = lab.simulator.usage(link.endpoint_id, timeout_s=1.0).addons
        bought = link.current_activations
        known = {each.addon_id for each in bought if each.addon_id is not None}
        assert known <= {addon.addon_id for addon in addons}
        plans = sorted(each.plan.provider_plan_id for each in bought)
        assert sorted(addon.provider_plan_id for addon in addons) == plans


def stock(lab: "Lab") -> list[tuple[str, bool]]:
    """Return every eSIM of the network, and whether it is free."""
    with lab.process.stores.reading() as connection:
        rows = connection.exec_driver_sql("SELECT iccid, is_free FROM simulated_esims")
        return [(iccid, bool(is_free)) for iccid, is_free in rows]


def endpoints(lab: "Lab") -> Iterator[Endpoint]:
    """Yield every endpoint that the network has now, or will have."""
    taken = "SELECT iccid FROM simulated_endpoints WHERE NOT is_removed"
    with lab.process.stores.reading() as connection:
        iccids = [iccid for (iccid,) in connection.exec_driver_sql(taken)]
    for iccid in iccids:
        endpoint = lab.simulator.find_endpoint(iccid, timeout_s=1.0)
        assert endpoint is not None
        yield endpoint


def check_orders(book: "OrderBook", books: Books, foreign: tuple[str, ...] = ()) -> None:
    """Each link has ordered once, and its order is delivered, taken back or an incident.

    `foreign` are references of orders that somebody else has placed; nobody touches them.
    """
    links = [each for each in books.every(Link) if each.is_visible and not is_cancelled(each)]
    assert len({link.iccid for link in links}) == len(links)
    held = [link.order.order_reference for link in links if link.order is not None]
    assert len({*held}) == len(held) == len(links)
    left = [e.order_reference for e in books.events if isinstance(e, LostOrder.LeftOver)]
    assert len({*left}) == len(left)

    def ends_of(bought: "Bought") -> list[str]:
        ends = ["delivered"] * (bought.order.order_reference in held)
        ends += ["taken back"] * bought.taken_back
        return ends + ["left over"] * (bought.order.order_reference in left)

    asked = [each.asked_by for each in book.orders if each.asked_by is not None]
    assert len({*asked}) == len(asked), "an order was placed again"
    for bought in book.orders:
        ours = bought.order.order_reference not in foreign
        assert len(ends_of(bought)) == ours, (bought.order.order_reference, ends_of(bought))
