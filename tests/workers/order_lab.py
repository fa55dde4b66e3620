"""A lab whose network sells by order, and what has to be true of it once nothing is left to do."""

from collections.abc import Callable
from typing import Any
from uuid import UUID

import pytest

from app.books.reconcile import Ours, costs_of
from domain.accounts.wallet import Wallet
from domain.links.link import Link, Stage
from domain.links.lost_order import LostOrder
from projections.audit.auditor import check_log
from tests.faulty_network import FaultyNetwork
from tests.installation import Installation, Process
from tests.order_network import Bought, OrderBook, SellingByOrder
from tests.projections.looking import timeline
from tests.workers.late_network import LateNetwork
from tests.workers.link_checks import Books, check_money, is_cancelled
from tests.workers.link_lab import DEPOSIT, Lab


class OrderLab(Lab):
    """Drives the saga of order networks, as `Lab` does that of a stock."""

    def __init__(self, installation: Installation, **kind: Any) -> None:
        self._kind = kind
        super().__init__(installation)

    def _begin(self, process: Process) -> None:
        if not hasattr(self, "book"):  # The network outlives every worker.
            self.book = OrderBook(self.clock)
            self.late = LateNetwork(
                SellingByOrder(self.book, "simulated", **self._kind), self.clock
            )
            self.network = FaultyNetwork(self.late)
        super()._begin(process)

    @property
    def books(self) -> Books:
        return Books(self.process.log)

    def left_over(self) -> list[str]:
        """Return the references of the orders that were shown as incidents."""
        events = self.books.events
        return [each.order_reference for each in events if isinstance(each, LostOrder.LeftOver)]

    def owed(self) -> list[Ours]:
        """Return what an invoice of the network must show."""
        return [*costs_of(self.process.log, "simulated")]

    def timeline(self, link_id: UUID) -> list[str]:
        """Return what `links show` tells of a link, by topic."""
        return [each.what for each in timeline(self.process, link_id)]


Orders = Callable[..., OrderLab]


@pytest.fixture
def orders(installation: Installation) -> Orders:
    """Make a lab of a kind of network: see `SellingByOrder`."""
    return lambda **kind: OrderLab(installation, **kind)


def check_orders(book: OrderBook, books: Books, foreign: tuple[str, ...] = ()) -> None:
    """Each link has ordered once, and its order is delivered, taken back or an incident.

    `foreign` are references of orders that somebody else has placed; nobody touches them.
    """
    links = [each for each in books.every(Link) if each.is_visible and not is_cancelled(each)]
    assert len({link.iccid for link in links}) == len(links)
    held = [link.order.order_reference for link in links if link.order is not None]
    assert len({*held}) == len(held) == len(links)
    left = [e.order_reference for e in books.events if isinstance(e, LostOrder.LeftOver)]
    assert len({*left}) == len(left)

    def ends_of(bought: Bought) -> list[str]:
        ends = ["delivered"] * (bought.order.order_reference in held)
        ends += ["taken back"] * bought.taken_back
        return ends + ["left over"] * (bought.order.order_reference in left)

    asked = [each.asked_by for each in book.orders if each.asked_by is not None]
    assert len({*asked}) == len(asked), "an order was placed again"
    for bought in book.orders:
        ours = bought.order.order_reference not in foreign
        assert len(ends_of(bought)) == ours, (bought.order.order_reference, ends_of(bought))


def check_order_lab(lab: OrderLab, foreign: tuple[str, ...] = ()) -> None:
    """Expect that everything has ended, and that log, money and network agree."""
    books = lab.books
    links = books.every(Link)
    assert all(link.stage in {Stage.ACTIVE, Stage.ENDED} for link in links)
    check_money(lab, links, books.events, DEPOSIT)
    check_orders(lab.book, books, foreign)
    assert check_log(lab.process.log).failures == []
    paid = [each for each in books.events if isinstance(each, Wallet.Charged)]
    assert len(paid) <= len(links)
