"""A network that sells by order, in this process: what it did is in its own ledger."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from threading import Lock
from typing import Literal

from msgspec.structs import replace

from domain.catalogue.supplied import SuppliedPlan
from domain.cause import Clock
from domain.cost import Cost, ProviderBalance
from domain.links.network import (
    ActivationCode,
    Addon,
    AddonUsage,
    Capability,
    LinkStatus,
    NetworkStatus,
    NoSuchEndpoint,
    Order,
    ProviderPlan,
    Usage,
)
from domain.provider_errors import Rejected, Unavailable

SHOWN_LATE = timedelta(seconds=40)  # After it was placed.
SETTLES_AFTER = timedelta(seconds=45)
FIRST_ICCID = 8_932_042_000_000_000_000
COST = 1_200_000


@dataclass
class Bought:
    """One order at the network: its eSIM and what is on it."""

    order: Order
    shown_at: datetime
    asked_by: str | None = None  # The reference of the call, whether it is kept or not.
    addons: dict[str, AddonUsage] = field(default_factory=dict)
    status: LinkStatus = "active"
    taken_back: bool = False


@dataclass
class OrderBook:
    """The far side. `lag` tells how long the list hides the next order."""

    clock: Clock
    orders: list[Bought] = field(default_factory=list)
    lag: Callable[[], timedelta] = timedelta
    is_down: bool = False
    late_at: datetime | None = None  # When a call that was delayed has its effect.
    resells: bool = False  # Whether an eSIM that was taken back is sold again.
    added: int = 0  # Plans on eSIMs that were there.
    lock: Lock = field(default_factory=Lock)

    def buy(
        self,
        plan: ProviderPlan,
        reference: str | None = None,
        *,
        keeps_it: bool = True,
        at: datetime | None = None,
    ) -> Order:
        """Sell an eSIM; also to somebody else, who has no adapter."""
        with self.lock:
            number, now = len(self.orders) + 1, at or self.late_at or self.clock()
            returned = [each.order.iccid for each in self.orders if each.taken_back]
            again = self.resells and len(returned) == 1
            order = Order(
                f"order-{number}",
                returned[0] if again else str(FIRST_ICCID + number),
                plan.provider_plan_id,
                now,
                reference if keeps_it else None,
                Cost(COST, "EUR", f"order-{number}", estimated=False),
            )
            bought = Bought(order, now + self.lag(), reference)
            bought.addons[f"addon-{number}-1"] = _usage(f"addon-{number}-1", plan)
            self.orders.append(bought)
        return order

    def of(self, iccid: str) -> Bought:
        for each in self.orders:
            if each.order.iccid == iccid and not each.taken_back:
                return each
        raise NoSuchEndpoint


class SellingByOrder:
    """The adapter; `stores_reference` and `takes_back` say what kind of network it plays."""

    remote = False
    shape: Literal["order"] = "order"
    adds_once = False
    background_reads_per_s = 20.0
    settles_after = SETTLES_AFTER
    capabilities: frozenset[Capability] = frozenset({"suspend", "remove_plan", "cancel"})

    def __init__(
        self,
        book: OrderBook,
        name: str = "orders",
        *,
        stores_reference: bool = False,
        takes_back: bool = True,
    ) -> None:
        self.book, self.name = book, name
        self.stores_reference = stores_reference
        self._takes_back = takes_back

    def probe(self, *, timeout_s: float) -> None:
        self._reach(timeout_s)

    def balance(self, *, timeout_s: float) -> ProviderBalance | None:
        self._reach(timeout_s)
        return None

    def supplied(self, *, timeout_s: float) -> Sequence[SuppliedPlan]:
        self._reach(timeout_s)
        return ()

    def order(self, plan: ProviderPlan, reference: str, *, timeout_s: float) -> Order:
        self._reach(timeout_s)
        if plan.provider_plan_id.startswith("refused"):
            raise Rejected
        return self.book.buy(plan, reference, keeps_it=self.stores_reference)

    def orders(
        self, plan: ProviderPlan, since: datetime, until: datetime, *, timeout_s: float
    ) -> Sequence[Order]:
        self._reach(timeout_s)
        item, now = plan.provider_plan_id, self.book.clock()
        shown = [
            each.order
            for each in self.book.orders
            if each.order.provider_plan_id == item
            and since <= each.order.placed_at <= until
            and each.shown_at <= now
        ]
        return sorted(shown, key=lambda order: order.placed_at)

    def take_back(self, order: Order, *, timeout_s: float) -> bool:
        self._reach(timeout_s)
        if self._takes_back:
            for each in self.book.orders:
                each.taken_back |= each.order.order_reference == order.order_reference
        return self._takes_back

    def add_plan(
        self, endpoint_id: str, plan: ProviderPlan, reference: str, *, timeout_s: float
    ) -> Addon:
        """Sell another plan for an eSIM, each time it is asked."""
        self._reach(timeout_s)
        del reference  # It keeps none.
        bought = self.book.of(endpoint_id)
        with self.book.lock:
            self.book.added += 1
            addon_id = f"addition-{self.book.added}"
            bought.addons[addon_id] = replace(
                _usage(addon_id, plan), order_reference=f"order of {addon_id}"
            )
        return Addon(addon_id, Cost(COST, "EUR", addon_id, estimated=False))

    def remove_plan(self, endpoint_id: str, addon_id: str, *, timeout_s: float) -> None:
        self._reach(timeout_s)
        with suppress(NoSuchEndpoint):
            self.book.of(endpoint_id).addons.pop(addon_id, None)

    def topups(self, endpoint_id: str, plans: Sequence[str], *, timeout_s: float) -> Sequence[str]:
        self._reach(timeout_s)
        self.book.of(endpoint_id)
        return [each for each in plans if not each.startswith("refused")]

    def usage(self, endpoint_id: str, *, timeout_s: float) -> Usage:
        self._reach(timeout_s)
        bought = self.book.of(endpoint_id)
        return Usage(bought.status, [*bought.addons.values()], self.book.clock())

    def status(self, endpoint_id: str, *, timeout_s: float) -> NetworkStatus:
        self._reach(timeout_s)
        status = self.book.of(endpoint_id).status
        return NetworkStatus(
            status, connected=False, network=None, last_seen_at=None, as_of=self.book.clock()
        )

    def suspend(self, endpoint_id: str, *, timeout_s: float) -> None:
        self._reach(timeout_s)
        self.book.of(endpoint_id).status = "suspended"

    def resume(self, endpoint_id: str, *, timeout_s: float) -> None:
        self._reach(timeout_s)
        self.book.of(endpoint_id).status = "active"

    def lpa(self, iccid: str, *, timeout_s: float) -> ActivationCode:
        self._reach(timeout_s)
        self.book.of(iccid)
        return ActivationCode(f"LPA:1$rsp.orders.example${iccid}")

    def _reach(self, timeout_s: float) -> None:
        if self.book.is_down or timeout_s <= 0:
            raise Unavailable


def _usage(addon_id: str, plan: ProviderPlan) -> AddonUsage:
    return AddonUsage(addon_id, plan.provider_plan_id, 0.0, float(plan.data_mb))
