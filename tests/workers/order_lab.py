"""A lab whose network sells by order, and what has to be true of it once nothing is left to do."""

from collections.abc import Callable, Iterator
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
from tests.order_network import OrderBook, SellingByOrder
from tests.projections.looking import timeline
from tests.workers.late_network import LateNetwork
from tests.workers.link_checks import Books, check_money, check_orders
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
def orders(installation: Installation) -> Iterator[Orders]:
    """Make a lab of a kind of network: see `SellingByOrder`; at the end all has ended well."""
    made: list[OrderLab] = []

    def make(**kind: Any) -> OrderLab:
        made.append(OrderLab(installation, **kind))
        return made[-1]

    yield make
    for each in made:
        each.check() if each.is_odd else check_order_lab(each)


def check_order_lab(lab: OrderLab, foreign: tuple[str, ...] = ()) -> None:
    """Expect that everything has ended, and that log, money and network agree."""
    books = lab.books
    links = books.every(Link)
    assert all(link.stage in {Stage.ACTIVE, Stage.ENDED} for link in links)
    assert [link.id for link in links if link.open_call] == []
    check_money(lab, links, books.events, DEPOSIT)
    check_orders(lab.book, books, foreign)
    assert check_log(lab.process.log).failures == []
    charges = (each for each in books.events if isinstance(each, Wallet.Charged))
    assert [each.kind for each in charges].count("activation") <= len(links)
