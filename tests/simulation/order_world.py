"""The world with a network that sells by order: its list is late, and its ledger is its own."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from domain.links.link import Link, Stage
from domain.links.lost_order import LostOrder
from domain.links.network import ProviderPlan
from tests.order_network import SHOWN_LATE, OrderBook, SellingByOrder
from tests.simulation.story import chance
from tests.simulation.template import PLANS
from tests.simulation.world import World
from tests.workers.link_checks import Books, check_orders

LAGS = (timedelta(), SHOWN_LATE)
# A call may have its effect in the first half of it, and the list then hides that for 40 s.
SETTLES_AFTER = timedelta(seconds=90)


class OrderWorld(World):
    """Somebody else has ordered each plan before; it is none of our business."""

    def _network(self) -> Any:
        random = chance(self.seed, "orders")
        # An order is told by its time, so the clocks must agree: nobody jumps here.
        self.hazards.rates["the clock jumps"] = 0.0
        # Where nothing is lost nothing is shown; these are what orders are about.
        self.hazards.rates["the network does it and the reply is lost"] = random.choice((0.2, 0.6))
        self.book = OrderBook(self.clock.network)
        self.foreign = tuple(
            self.book.buy(
                ProviderPlan(item, 1_000, 3_650), at=self.clock.network() - timedelta(seconds=9)
            ).order_reference
            for item in PLANS
        )
        self.book.lag = lambda: chance(self.seed, "lag", len(self.book.orders)).choice(LAGS)
        network = SellingByOrder(
            self.book,
            "simulated",
            stores_reference=random.random() < 0.2,
            takes_back=random.random() < 0.7,
        )
        network.settles_after = SETTLES_AFTER
        return network

    def deactivate(self, endpoint_id: str) -> None:
        self.book.of(endpoint_id).status = "inactive"

    def check_network(self, books: Books, links: Sequence[Link]) -> None:
        """Expect each order in one place, and on each link its plans and no others."""
        check_orders(self.book, books, self.foreign)
        for lost in books.every(LostOrder):
            assert lost.is_settled, f"lost order {lost.id} is not settled"
        for link in links:
            if link.stage is not Stage.ACTIVE:
                continue
            assert link.iccid is not None
            there = self.book.of(link.iccid).addons.values()
            bought = [each.plan.provider_plan_id for each in link.current_activations]
            assert sorted(each.provider_plan_id for each in there) == sorted(bought), link.id
