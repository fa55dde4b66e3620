"""The adapter: each call of the port, over tables that all processes share.

The real networks that a device of the simulator is served by, chosen by seed.
"""

import csv
from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final

from app.adapters.networks.simulated.calls import Call, Calls
from app.adapters.networks.simulated.identifiers import Identifiers
from app.adapters.networks.simulated.inventory import PAGE_ESIMS, Inventory
from app.adapters.networks.simulated.script import LATE, PATIENCE, Fault, comes_at, fault_of, refuse
from app.adapters.networks.simulated.subscription import Subscription, addon_of, begin
from domain.cause import Clock
from domain.links.network import (
    AvailableEsim,
    Endpoint,
    NetworkStatus,
    NoSuchEndpoint,
    ProviderPlan,
    ServingNetwork,
    Usage,
)
from domain.provider_errors import OutcomeUnknown, Rejected, Unavailable
from projections.engine.database import Database

# One network a country, by the codes of ITU-T E.212. Those of the table of carriers are taken from
# it; the others are in countries where no carrier's codes are certain. Where the sample plans work
# it is an operator of theirs.
SHIPPED: Final = Path(__file__).parents[1] / "data" / "serving_networks.csv"


def _read() -> dict[str, ServingNetwork]:
    with SHIPPED.open(encoding="utf-8", newline="") as lines:
        return {row["country_code"]: ServingNetwork(**row) for row in csv.DictReader(lines)}


NETWORKS: Final = _read()


def network_for(
    identifiers: Identifiers, iccid: str, covered: Iterable[Collection[str]]
) -> ServingNetwork | None:
    """Return what serves the device of an eSIM; None where no plan works.

    `covered` are the countries of the plans that it has used, in their order. It travels only when
    the next plan does not work where it is. A plan without countries works everywhere.
    """
    here = None
    for countries in covered:
        known = [code for code in countries or NETWORKS if code in NETWORKS]
        if here not in known:
            # Each country has a number of its own: another one in the list changes nothing else.
            here = max(
                known, key=lambda code: identifiers.roll("country", f"{iccid} {code}"), default=None
            )
    return None if here is None else NETWORKS[here]


PRODUCT: Final = "esim"
PAGES_MAX: Final = 20  # The stock has no end, but whoever reads on must come to one.
VALIDITY_DAYS_MAX: Final = 36_500  # A century: every moment that follows from it is a date.
OPERATOR_TIMEOUT_S: Final = 10.0

_UNKNOWN_ESIM: Final = "the network knows no such eSIM"


class SimulatedNetwork:
    """Sells eSIMs that follow from a seed and are used as the clock goes on.

    There is one product, `esim`, and any number of eSIMs for any sponsor profile; an eSIM that had
    an endpoint is free again when it was given back. Any base plan but the empty one will do. With
    `sandbox` the plans of `script` fail on demand. `wait` blocks for so many seconds;
    `patience` is how long callers wait for one outcome, so what is late comes after it.

    Under a reference that it knows it refuses an addition only of another plan or of one that was
    taken off.
    """

    name = "simulated"

    def __init__(  # noqa: PLR0913  # It stands for a whole network.
        self,
        database: Database,
        clock: Clock,
        seed: str,
        *,
        sandbox: bool,
        wait: Callable[[float], object],
        patience: timedelta = PATIENCE,
    ) -> None:
        self.settles_after = patience + LATE
        self._calls = Calls(database, clock)
        self._identifiers = Identifiers(seed)
        self._inventory = Inventory(self._identifiers)
        self.metadata = self._inventory.metadata
        self._sandbox = sandbox
        self._wait = wait

    def available_esims(
        self,
        plan: ProviderPlan,
        sponsor_profile_id: str | None,
        product: str,
        *,
        page: int,
        timeout_s: float,
    ) -> Sequence[AvailableEsim]:
        """Return one page of free eSIMs, making more when they run short."""
        unknown = product not in {"", PRODUCT}
        if unknown or page >= PAGES_MAX or self._fault_of(plan) is Fault.NO_ESIM:
            return []
        with self._calls.reading(timeout_s) as call:
            esims = self._inventory.free_esims(call.connection, sponsor_profile_id, page)
        if len(esims) >= PAGE_ESIMS:
            return esims
        try:  # Not within the read: many at once would each hold a connection and want another.
            with self._calls.changing(timeout_s) as call:
                self._inventory.fill(call.connection, sponsor_profile_id, (page + 1) * PAGE_ESIMS)
                return self._inventory.free_esims(call.connection, sponsor_profile_id, page)
        except OutcomeUnknown as trouble:  # It is a read all the same.
            raise Unavailable(str(trouble)) from None

    def create_endpoint(
        self, iccid: str, plan: ProviderPlan, base_plan: str, reference: str, *, timeout_s: float
    ) -> Endpoint:
        """Make the endpoint of a free eSIM, or return the one of this reference."""
        fault = self._accept(plan)
        if not base_plan:
            message = "an endpoint needs a base plan"
            raise Rejected(message)
        with self._calls.changing(timeout_s) as call:
            kept = self._kept(call, iccid, reference)
            made = kept or self._make(call, iccid, plan, reference)
        self._reply(call, fault, made.created_at, is_new=kept is None)
        return made.endpoint()

    def find_endpoint(self, iccid: str, *, timeout_s: float) -> Endpoint | None:
        """Return the endpoint of an eSIM; one that is late is not there yet."""
        with self._calls.reading(timeout_s) as call:
            found = self._inventory.by_iccid(call.connection, iccid)
        return found.endpoint() if found and found.created_at <= call.now else None

    def remove_endpoint(self, endpoint_id: str, *, timeout_s: float) -> None:
        """End an endpoint; its eSIM waits to be given back."""
        with suppress(NoSuchEndpoint), self._calls.changing(timeout_s) as call:
            self._present(call, endpoint_id)
            self._inventory.remove(call.connection, endpoint_id)

    def release_esim(self, iccid: str, *, timeout_s: float) -> None:
        """Put an eSIM back into the stock; one that was never made is no error."""
        with self._calls.changing(timeout_s) as call:
            free = self._inventory.is_free(call.connection, iccid, lock=True)
            if self._inventory.by_iccid(call.connection, iccid) is not None:
                message = "the eSIM has an endpoint"
                raise Rejected(message)
            if free is False:
                self._inventory.mark(call.connection, iccid, is_free=True)

    def add_plan(
        self, endpoint_id: str, plan: ProviderPlan, reference: str, *, timeout_s: float
    ) -> str:
        """Put a plan on an endpoint, or return the add-on of this reference."""
        fault = self._accept(plan)
        with self._calls.changing(timeout_s) as call:
            before = self._present(call, endpoint_id)
            kept = before.addon(reference)
            if kept and (kept.removed or kept.provider_plan_id != plan.provider_plan_id):
                message = "this reference was used for another plan, or its plan was removed"
                raise Rejected(message)
            since = comes_at(fault, call.now, self.settles_after)
            addon = kept or addon_of(self._identifiers, endpoint_id, reference, plan, since)
            if kept is None:
                after = before.with_addon(addon)
                self._inventory.update(call.connection, _reachable_or_not(after, fault))
        self._reply(call, fault, addon.added_at, is_new=kept is None)
        return addon.addon_id

    def remove_plan(self, endpoint_id: str, addon_id: str, *, timeout_s: float) -> None:
        """Take a plan off an endpoint; where there is no endpoint it is gone as well."""
        with suppress(NoSuchEndpoint):
            self._change(endpoint_id, timeout_s, lambda it, now: it.without_addon(addon_id, now))

    def usage(self, endpoint_id: str, *, timeout_s: float) -> Usage:
        """Compute the usage of this moment; nothing is written."""
        found, now = self._read(endpoint_id, timeout_s)
        return found.usage(now)

    def status(self, endpoint_id: str, *, timeout_s: float) -> NetworkStatus:
        """Tell whether its device is connected at this moment."""
        found, now = self._read(endpoint_id, timeout_s)
        serving = network_for(self._identifiers, found.iccid, found.covered(now))
        return found.network_status(serving, now)

    def suspend(self, endpoint_id: str, *, timeout_s: float) -> None:
        """Stop the traffic; plans that have started go on to expire."""
        self._change(endpoint_id, timeout_s, lambda it, now: it.stopped("suspended", now))

    def resume(self, endpoint_id: str, *, timeout_s: float) -> None:
        """Let traffic flow again."""
        self._change(endpoint_id, timeout_s, lambda it, now: it.resumed(now))

    def deactivate(self, endpoint_id: str) -> None:
        """Make an endpoint inactive, which is the network's own doing and not of the port."""
        self._change(endpoint_id, OPERATOR_TIMEOUT_S, lambda it, now: it.stopped("inactive", now))

    def lpa(self, iccid: str, *, timeout_s: float) -> str:
        """Return the activation code of an eSIM, in use or free."""
        with self._calls.reading(timeout_s) as call:
            known = self._inventory.is_free(call.connection, iccid) is not None
            found = self._inventory.by_iccid(call.connection, iccid) if self._sandbox else None
        if not known:
            raise Rejected(_UNKNOWN_ESIM)
        self._reach(found)
        return self._identifiers.lpa(iccid)

    def _fault_of(self, plan: ProviderPlan) -> Fault | None:
        return fault_of(plan) if self._sandbox else None

    def _accept(self, plan: ProviderPlan) -> Fault | None:
        """Refuse a plan that cannot be sold; return what goes wrong with one that is."""
        if plan.data_mb < 1 or not 1 <= plan.validity_days <= VALIDITY_DAYS_MAX:
            message = "a plan needs data and a validity that ends"
            raise Rejected(message)
        fault = self._fault_of(plan)
        refuse(fault)
        return fault

    def _kept(self, call: Call, iccid: str, reference: str) -> Subscription | None:
        """Return what an earlier creation has made; refuse an eSIM that is not free for a new one.

        It locks the eSIM, so that of two creations one is first.
        """
        free = self._inventory.is_free(call.connection, iccid, lock=True)
        if free is None:
            raise Rejected(_UNKNOWN_ESIM)
        endpoint_id = self._identifiers.endpoint_id(iccid, reference)
        kept, has_ended = self._inventory.ever(call.connection, endpoint_id)
        if kept is None and not free:
            message = "the eSIM is in use, or was not given back"
            raise Rejected(message)
        if has_ended:
            message = "the endpoint of this reference has ended"
            raise Rejected(message)
        return kept

    def _make(self, call: Call, iccid: str, plan: ProviderPlan, reference: str) -> Subscription:
        fault = self._fault_of(plan)
        since = comes_at(fault, call.now, self.settles_after)
        made = _reachable_or_not(begin(self._identifiers, iccid, reference, plan, since), fault)
        self._inventory.mark(call.connection, iccid, is_free=False)
        self._inventory.insert(call.connection, made)
        return made

    def _reply(self, call: Call, fault: Fault | None, since: datetime, *, is_new: bool) -> None:
        """Keep the reply back where the sandbox wants it: late, or lost the first time."""
        if since > call.now:
            self._wait(self._calls.left_s(call))
            message = "the sandbox plays a reply that is late"
            raise OutcomeUnknown(message)
        if is_new and fault is Fault.LOST_REPLY:
            message = "the sandbox plays a reply that is lost"
            raise OutcomeUnknown(message)

    def _present(self, call: Call, endpoint_id: str, *, lock: bool = True) -> Subscription:
        found = self._inventory.by_id(call.connection, endpoint_id, lock=lock)
        if found is None or found.created_at > call.now:
            message = "the network knows no such endpoint"
            raise NoSuchEndpoint(message)
        return found

    def _read(self, endpoint_id: str, timeout_s: float) -> tuple[Subscription, datetime]:
        with self._calls.reading(timeout_s) as call:
            found = self._present(call, endpoint_id, lock=False)
        self._reach(found)
        return found, call.now

    def _reach(self, found: Subscription | None) -> None:
        if self._sandbox and found is not None and found.unreachable:
            message = "the sandbox plays a network that cannot be reached"
            raise Unavailable(message)

    def _change(
        self,
        endpoint_id: str,
        timeout_s: float,
        change: Callable[[Subscription, datetime], Subscription],
    ) -> None:
        with self._calls.changing(timeout_s) as call:
            before = self._present(call, endpoint_id)
            self._inventory.update(call.connection, change(before, call.now))


def _reachable_or_not(subscription: Subscription, fault: Fault | None) -> Subscription:
    return subscription.cut_off() if fault is Fault.UNREACHABLE else subscription
