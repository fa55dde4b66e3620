"""The simulated network: each call of the port, over tables that all processes share.

Also the choice of the real network that serves a simulated device, by seed, and the plans of a
sandbox, each of which plays one failure that a partner can meet.
"""

import csv
from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from enum import StrEnum
from pathlib import Path
from typing import Final, Literal
from uuid import UUID

from msgspec.structs import replace
from sqlalchemy import Connection

from app.adapters.networks.simulated.identifiers import Identifiers
from app.adapters.networks.simulated.inventory import PAGE_ESIMS, Call, Calls, Inventory
from app.adapters.networks.simulated.subscription import Subscription, addon_of, create
from domain.catalogue.plan import SIMULATED
from domain.cause import Clock
from domain.links.network import (
    ActivationCode,
    Addon,
    Capability,
    Endpoint,
    NetworkStatus,
    NoEndpoint,
    NoSuchEndpoint,
    ProviderPlan,
    ServingNetwork,
    StockNetwork,
    Usage,
)
from domain.provider_errors import OutcomeUnknown, Rejected, Unavailable
from projections.engine.database import Database

# One network for each country, by its code of ITU-T E.212. The code comes from the carrier table if
# that has one; the other countries have no certain carrier code. In the countries of the sample
# plans the network is one of their operators.
SHIPPED: Final = Path(__file__).parents[1] / "data" / "serving_networks.csv"


def _read() -> dict[str, ServingNetwork]:
    with SHIPPED.open(encoding="utf-8", newline="") as lines:
        return {row["country_code"]: ServingNetwork(**row) for row in csv.DictReader(lines)}


NETWORKS: Final = _read()


def network_for(
    identifiers: Identifiers,
    iccid: str,
    covered: Iterable[Collection[str]],
    roams_in: str | None = None,
) -> ServingNetwork | None:
    """Return the network that serves the device of an eSIM; None where no plan works.

    `covered` are the countries of the plans that it has used, in order of use. The device travels
    only when its next plan does not work where it is. A plan without countries works everywhere.
    `roams_in` is where it was sent by the sandbox.
    """
    here = None
    for countries in covered:
        known = [code for code in countries or NETWORKS if code in NETWORKS]
        if roams_in in known:
            here = roams_in
        elif here not in known:
            # Each country draws its own number, so another country in the list changes nothing.
            here = max(
                known, key=lambda code: identifiers.roll("country", f"{iccid} {code}"), default=None
            )
    return None if here is None else NETWORKS[here]


PRODUCT: Final = "esim"
# The stock is endless, but a caller that reads page after page must reach an end.
PAGES_MAX: Final = 20
# A century, so that every moment computed from it is a valid date.
VALIDITY_DAYS_MAX: Final = 36_500
OPERATOR_TIMEOUT_S: Final = 10.0

_UNKNOWN_ESIM: Final = "the network knows no such eSIM"

PATIENCE: Final = timedelta(seconds=15)  # How long callers wait for one outcome, over all calls.
LATE: Final = timedelta(seconds=3)  # A late effect comes this long after callers have given up.


class Fault(StrEnum):
    """What goes wrong; the value is the `provider_plan_id` that asks for it."""

    NO_ENDPOINT = "sandbox-no-endpoint"
    PROVIDER_ERROR = "sandbox-provider-error"
    NO_ESIM = "sandbox-no-esim"
    LOST_REPLY = "sandbox-lost-reply"
    SLOW = "sandbox-slow"
    UNREACHABLE = "sandbox-unreachable"


_FAULTS = {fault.value: fault for fault in Fault}
# These have no effect on the network.
_REFUSED: Final = {
    Fault.NO_ENDPOINT: (NoEndpoint, "an answer without an id"),
    Fault.PROVIDER_ERROR: (Unavailable, "a network that fails"),
    Fault.NO_ESIM: (Rejected, "a plan that no eSIM can carry"),
}
# How a suspension, a reactivation or an end can be scripted to fail; none of it has an effect.
CHANGES: Final = {"refused": Rejected, "unreachable": Unavailable, "slow": OutcomeUnknown}
Owner = tuple[UUID, ...]  # An organization and its link.
# An endpoint, the present moment by its clock, and how far that is ahead of ours.
Present = tuple[Subscription, datetime, timedelta]
Change = Callable[[Subscription, datetime], Subscription]


class SimulatedNetwork(StockNetwork):
    """Sells eSIMs that follow from a seed; their plans are used up as time passes.

    There is one product, `esim`, and any number of eSIMs for any sponsor profile. An eSIM that had
    an endpoint is free again once it is released. Every base plan but the empty one is accepted.
    With `sandbox` on, the plans that `Fault` lists fail on demand. `wait` blocks for a number of
    seconds. `patience` is how long callers wait for an outcome; a late outcome comes after it. Each
    `name` has its own tables. The time of an endpoint is `ahead` of `clock`, by the organization
    and the link that `owner_of` its ICCID returns; none for an eSIM that no link holds. That never
    changes.

    An addition under a known reference returns the earlier add-on. It is refused if it is for
    another plan, or if that add-on was removed since.
    """

    remote = False
    shape: Literal["stock"] = "stock"
    creates_once = True
    adds_once = True
    background_reads_per_s = 20.0  # They share the machine with the requests of partners.
    capabilities: frozenset[Capability] = frozenset(
        {"suspend", "location", "remove_plan", "cancel"}
    )

    def __init__(  # noqa: PLR0913  # It takes the place of a whole network.
        self,
        database: Database,
        clock: Clock,
        seed: str,
        *,
        sandbox: bool,
        wait: Callable[[float], object],
        patience: timedelta = PATIENCE,
        name: str = SIMULATED,
        ahead: Callable[[Owner, Connection], timedelta] = lambda *_: timedelta(0),
        owner_of: Callable[[str], Owner] | None = None,
        scripted: Callable[[UUID, str], str | None] = lambda *_: None,
    ) -> None:
        self.name = name
        self.settles_after = patience + LATE
        self._calls = Calls(database, clock)
        self._ahead = ahead
        self._owner_of = owner_of or (lambda _: ())
        self._has_owners = owner_of is not None
        self._scripted = scripted
        self._identifiers = Identifiers(seed)
        self._inventory = Inventory(self._identifiers, name)
        self.metadata = self._inventory.metadata
        self._sandbox = sandbox
        self._wait = wait

    def probe(self, *, timeout_s: float) -> None:
        with self._calls.reading(timeout_s) as call:
            self._inventory.is_free(call.connection, "")

    def available_esims(
        self,
        plan: ProviderPlan,
        sponsor_profile_id: str | None,
        product: str,
        *,
        page: int,
        timeout_s: float,
    ) -> Sequence[str]:
        """Return one page of free eSIMs; make more when they run short."""
        unknown = product not in {"", PRODUCT}
        if unknown or page >= PAGES_MAX or self._fault_of(plan) is Fault.NO_ESIM:
            return []
        with self._calls.reading(timeout_s) as call:
            esims = self._inventory.free_esims(call.connection, sponsor_profile_id, page)
        if len(esims) >= PAGE_ESIMS:
            return esims
        # After the read, because a caller that holds a connection must not wait for a second one.
        try:
            with self._calls.changing(timeout_s) as call:
                self._inventory.fill(call.connection, sponsor_profile_id, (page + 1) * PAGE_ESIMS)
                return self._inventory.free_esims(call.connection, sponsor_profile_id, page)
        # For the caller this is still a read, which has no unknown outcome.
        except OutcomeUnknown as trouble:
            raise Unavailable(str(trouble)) from None

    def create_endpoint(
        self, iccid: str, plan: ProviderPlan, base_plan: str, reference: str, *, timeout_s: float
    ) -> Endpoint:
        fault = self._accept(plan)
        if not base_plan:
            raise Rejected("an endpoint needs a base plan")
        owner = self._owner_of(iccid)
        with self._calls.changing(timeout_s) as call:
            earlier = self._earlier_result(call, iccid, reference)
            now, ahead = self._time(call, owner)
            made = earlier
            if made is None:
                since = self._comes_at(fault, now)
                made = create(self._identifiers, iccid, reference, plan, since, ahead)
                made = _reachable_or_not(made, fault)
                self._inventory.mark(call.connection, iccid, is_free=False)
                self._inventory.insert(call.connection, made)
        self._reply(call, fault, made.created_at - ahead, is_new=earlier is None)
        return made.endpoint()

    def find_endpoint(self, iccid: str, *, timeout_s: float) -> Endpoint | None:
        """Return the endpoint of an eSIM, unless its creation takes effect later."""
        owner = self._owner_of(iccid)
        with self._calls.reading(timeout_s) as call:
            found = self._inventory.by_iccid(call.connection, iccid)
            now, _ = self._time(call, owner)
        return found.endpoint() if found and found.created_at <= now else None

    def remove_endpoint(self, endpoint_id: str, *, timeout_s: float) -> None:
        """Remove an endpoint; its eSIM must still be released."""
        owner = self._fail_if_scripted(endpoint_id, timeout_s)
        with suppress(NoSuchEndpoint), self._calls.changing(timeout_s) as call:
            self._present(call, endpoint_id, owner)
            self._inventory.remove(call.connection, endpoint_id)

    def release_esim(self, iccid: str, *, timeout_s: float) -> None:
        """Put an eSIM back into the stock; an unknown eSIM is no error."""
        with self._calls.changing(timeout_s) as call:
            free = self._inventory.is_free(call.connection, iccid, lock=True)
            if self._inventory.by_iccid(call.connection, iccid) is not None:
                raise Rejected("the eSIM has an endpoint")
            if free is False:
                self._inventory.mark(call.connection, iccid, is_free=True)

    def add_plan(
        self, endpoint_id: str, plan: ProviderPlan, reference: str, *, timeout_s: float
    ) -> Addon:
        fault, (_, owner) = self._accept(plan), self._holder(endpoint_id, timeout_s)
        with self._calls.changing(timeout_s) as call:
            before, now, ahead = self._present(call, endpoint_id, owner)
            earlier = before.addon(reference)
            if earlier and (earlier.removed or earlier.provider_plan_id != plan.provider_plan_id):
                raise Rejected("this reference was used for another plan, or its plan was removed")
            since = self._comes_at(fault, now)
            addon = earlier or addon_of(self._identifiers, endpoint_id, reference, plan, since)
            if earlier is None:
                after = before.with_addon(addon)
                self._inventory.update(call.connection, _reachable_or_not(after, fault))
        self._reply(call, fault, addon.added_at - ahead, is_new=earlier is None)
        return Addon(addon.addon_id)

    def remove_plan(self, endpoint_id: str, addon_id: str, *, timeout_s: float) -> None:
        """Take a plan off an endpoint; if there is no endpoint, the plan is gone too."""
        with suppress(NoSuchEndpoint):
            self.play(endpoint_id, lambda it, now: it.without_addon(addon_id, now), timeout_s)

    def usage(self, endpoint_id: str, *, timeout_s: float) -> Usage:
        """Compute the usage at this moment; nothing is written."""
        found, now, ahead = self._read(endpoint_id, timeout_s)
        return found.usage(now, ahead)

    def status(self, endpoint_id: str, *, timeout_s: float) -> NetworkStatus:
        found, now, ahead = self._read(endpoint_id, timeout_s)
        covered = found.covered(now)
        serving = network_for(self._identifiers, found.iccid, covered, found.roams_in)
        return found.network_status(serving, now, ahead)

    def suspend(self, endpoint_id: str, *, timeout_s: float) -> None:
        """Stop the traffic; plans that have started still expire."""
        self._fail_if_scripted(endpoint_id, timeout_s)
        self.play(endpoint_id, lambda it, now: it.stopped("suspended", now), timeout_s)

    def resume(self, endpoint_id: str, *, timeout_s: float) -> None:
        self._fail_if_scripted(endpoint_id, timeout_s)
        self.play(endpoint_id, Subscription.resumed, timeout_s)

    def play(self, endpoint_id: str, change: Change, timeout_s: float = OPERATOR_TIMEOUT_S) -> bool:
        """Change an endpoint; tell whether anything has happened that was not so already.

        Not in the port, because a sandbox plays what only a device does.
        """
        _, owner = self._holder(endpoint_id, timeout_s)
        with self._calls.changing(timeout_s) as call:
            before, now, _ = self._present(call, endpoint_id, owner)
            after = change(before, now)
            self._inventory.update(call.connection, after)
        return after.facts(now) != before.facts(now)

    def lpa(self, iccid: str, *, timeout_s: float) -> ActivationCode:
        """Return the activation code of an eSIM, whether it is in use or free."""
        with self._calls.reading(timeout_s) as call:
            known = self._inventory.is_free(call.connection, iccid) is not None
            found = self._inventory.by_iccid(call.connection, iccid) if self._sandbox else None
        if not known:
            raise Rejected(_UNKNOWN_ESIM)
        self._reach(found)
        return ActivationCode(
            self._identifiers.lpa(iccid), self._identifiers.confirmation_code(iccid)
        )

    def _fault_of(self, plan: ProviderPlan) -> Fault | None:
        return _FAULTS.get(plan.provider_plan_id) if self._sandbox else None

    def _accept(self, plan: ProviderPlan) -> Fault | None:
        """Refuse a plan that cannot be sold; return the fault that a sandbox plan asks for."""
        if plan.data_mb < 1 or not 1 <= plan.validity_days <= VALIDITY_DAYS_MAX:
            raise Rejected("a plan needs data and a validity that ends")
        fault = self._fault_of(plan)
        if fault in _REFUSED:
            kind, what = _REFUSED[fault]
            raise kind(f"the sandbox plays {what}")
        return fault

    def _earlier_result(self, call: Call, iccid: str, reference: str) -> Subscription | None:
        """Return the result of an earlier creation; refuse a new one if the eSIM is not free.

        Locks the eSIM, so that two creations come one after the other.
        """
        free = self._inventory.is_free(call.connection, iccid, lock=True)
        if free is None:
            raise Rejected(_UNKNOWN_ESIM)
        endpoint_id = self._identifiers.endpoint_id(iccid, reference)
        earlier, has_ended = self._inventory.ever(call.connection, endpoint_id)
        if earlier is None and not free:
            raise Rejected("the eSIM is in use, or was not given back")
        if has_ended:
            raise Rejected("the endpoint of this reference has ended")
        return earlier

    def _comes_at(self, fault: Fault | None, now: datetime) -> datetime:
        """Return the moment from which the effect of a call that begins now can be seen.

        The effect is stored at once with that moment, so that it appears even if the process of the
        call has died.
        """
        return now + self.settles_after if fault is Fault.SLOW else now

    def _holder(self, endpoint_id: str, timeout_s: float) -> tuple[str, Owner]:
        """Return eSIM and owner of an endpoint, before a connection is held for the call."""
        if not self._has_owners:
            return "", ()
        with self._calls.reading(timeout_s) as call:
            found = self._inventory.by_id(call.connection, endpoint_id)
        return (found.iccid, self._owner_of(found.iccid)) if found else ("", ())

    def _fail_if_scripted(self, endpoint_id: str, timeout_s: float) -> Owner:
        """Return whose an endpoint is, unless a change of it was scripted to fail."""
        iccid, owner = self._holder(endpoint_id, timeout_s)
        how = self._scripted(owner[0], iccid) if owner else None
        if how == "slow":
            self._wait(timeout_s)
        if how is not None:
            raise CHANGES[how](f"the sandbox plays a change that is {how}")
        return owner

    def _time(self, call: Call, owner: Owner) -> tuple[datetime, timedelta]:
        """Return the present moment of an organization's links, and how far it is ahead."""
        ahead = self._ahead(owner, call.connection)
        return call.now + ahead, ahead

    def _reply(self, call: Call, fault: Fault | None, since: datetime, *, is_new: bool) -> None:
        """Delay the reply, or lose the first one, if the sandbox plan asks for that."""
        if since > call.now:
            self._wait(self._calls.left_s(call))
            raise OutcomeUnknown("the sandbox plays a reply that is late")
        if is_new and fault is Fault.LOST_REPLY:
            raise OutcomeUnknown("the sandbox plays a reply that is lost")

    def _present(self, call: Call, endpoint_id: str, owner: Owner, *, lock: bool = True) -> Present:
        found = self._inventory.by_id(call.connection, endpoint_id, lock=lock)
        now, ahead = self._time(call, owner)
        if found is None or found.created_at > now:
            raise NoSuchEndpoint("the network knows no such endpoint")
        return found, now, ahead

    def _read(self, endpoint_id: str, timeout_s: float) -> Present:
        _, owner = self._holder(endpoint_id, timeout_s)
        with self._calls.reading(timeout_s) as call:
            present = self._present(call, endpoint_id, owner, lock=False)
        self._reach(present[0])
        return present

    def _reach(self, found: Subscription | None) -> None:
        if self._sandbox and found is not None and found.unreachable:
            raise Unavailable("the sandbox plays a network that cannot be reached")


def _reachable_or_not(subscription: Subscription, fault: Fault | None) -> Subscription:
    return replace(subscription, unreachable=True) if fault is Fault.UNREACHABLE else subscription
