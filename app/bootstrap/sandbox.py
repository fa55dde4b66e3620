"""What a partner of a sandbox plays: with time and devices of its links, and with failures.

All of it is stored where the simulated network, and what plays failures, look in every process. So
reads, webhooks and the background reading follow by their ordinary ways.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cached_property, lru_cache, partial
from hashlib import sha256
from itertools import takewhile
from typing import Any, Final
from uuid import UUID

from msgspec.structs import replace

from app.adapters.lookups import sandbox as lookups
from app.adapters.networks.simulated.network import CHANGES, NETWORKS, Fault, SimulatedNetwork
from app.adapters.networks.simulated.subscription import NoPlan, Subscription
from domain.accounts.organization import Organization
from domain.catalogue.plan import SIMULATED
from domain.cause import Cause
from domain.daily import Daily
from domain.errors import LinkInUse, NetworkUnavailable, NotSupportedByNetwork, ValidationFailed
from domain.links.bought_plan import BoughtPlan
from domain.links.change_plans import NOT_THERE
from domain.links.link import Link
from domain.provider_errors import ProviderError
from projections.engine.freshness import require_projected
from projections.engine.positions import Source
from projections.models.due import DueList, owner_of
from projections.models.jobs import Jobs, JobStatus
from projections.models.links import LinkFilter, Links
from projections.stores.counters import Counters
from workers.reading import BackgroundReading

PLAN_ID, PHONE_NUMBER, KEY_PREFIX = "plan_id", "phone_number", "key_prefix"
LOOKUP, PURCHASE, CHANGE, REQUEST = "lookup", "purchase", "change", "request"
PLANS: Final = {each.name.lower(): each.value for each in Fault}
# A request is refused before its operation begins, with one of these codes in lower case.
REFUSALS: Final = (
    *("rate_limited", "service_unavailable", "unauthorized", "organization_suspended"),
    *("insufficient_balance", "spending_limit", "billing_not_configured"),
    *("organization_inactive", "organization_not_found", "number_lookup_disabled"),
    *("config_error", "internal_error", "not_supported_by_network", "link_busy"),
    *("idempotency_in_progress", "link_in_use", "cancel_window_over"),
)
# How each can be scripted to fail, and what always fails so: a number, a `provider_plan_id`.
FAILURES: Final[Mapping[str, Mapping[str, str | None]]] = {
    LOOKUP: {each: lookups.NUMBER_OF.get(each) for each in lookups.FAILURES},
    PURCHASE: PLANS,
    CHANGE: dict.fromkeys(CHANGES),
    REQUEST: dict.fromkeys(REFUSALS),
}
# By what each can be told from the other attempts of an organization.
SELECTORS: Final[Mapping[str, Collection[str]]] = {
    LOOKUP: [PHONE_NUMBER],
    PURCHASE: [PLAN_ID, KEY_PREFIX],
    CHANGE: [PLAN_ID],
    REQUEST: [PLAN_ID, PHONE_NUMBER, KEY_PREFIX],
}
# What can happen to a link: its state, the moment, what is given, the network's id of its plan.
ACTIONS: Final[Mapping[str, Callable[[Subscription, datetime, Any, str | None], Subscription]]] = {
    "install": lambda it, now, *_: it.installed(now),
    "use": lambda it, now, given, addon: it.used(now, addon, given["percent"]),
    "roam": lambda it, now, given, _: it.roaming(now, given["country_code"], NETWORKS),
    "suspend": lambda it, now, *_: it.stopped("suspended", now),
    "deactivate": lambda it, now, *_: it.stopped("inactive", now),
    "expire": lambda it, now, given, addon: it.ending(
        now, addon, timedelta(hours=given.get("hours", 0))
    ),
}
HOURS_MAX: Final = 8_760  # A year, for one call.
PURCHASES_MAX: Final = 1_000  # One that has lost a race is decided anew within seconds.
NOT_COVERED: Final = "No plan in use on this link works in this country."
STILL_LIVES: Final = "A link of yours has not ended; end all of them first."
OVER: Final = "Nothing is left to use: the plan is over."
RESETS_MAX: Final = 100  # On a day. Every load of the organization reads all its events.
RESET_OFTEN: Final = f"The sandbox was reset {RESETS_MAX} times today."


@dataclass(frozen=True)
class Sandbox:
    """Plays for one organization at a time; what belongs to another stays as it is."""

    counters: Counters
    network: SimulatedNetwork
    source: Source
    background_reading: BackgroundReading
    links: Links
    jobs: Jobs
    due_list: DueList

    @cached_property
    def _failure_of(self) -> Callable[[UUID, str | None, UUID, Cause], str | None]:
        """Counts a purchase, and returns how it has to fail; decided anew, it fails alike."""

        def count(owner: UUID, key: str | None, plan_id: UUID, _: Cause) -> str | None:
            fits = partial(is_of, operation=PURCHASE, plans=[plan_id], key=key)
            return self.counters.next_failure(owner, lambda of, _: fits(of))

        return lru_cache(PURCHASES_MAX)(count)

    def advance(self, by: timedelta, owner: UUID, link_id: UUID | None = None) -> timedelta:
        """Let time pass for the links of an organization, or one; return how far it is ahead.

        All of them are read anew within seconds. Raises NotPossible beyond ten years, and
        ServiceUnavailable as `reset` does, for what is not listed would not be read anew.
        """
        reading = self.background_reading
        require_projected(self.source, reading.links.name)
        reading.enter()
        hasten = reading.reading_schedule.hasten  # Nothing may fail once the clock has moved.
        whose = (owner, link_id) if link_id else (owner,)
        return self.counters.advance_simulated(by, whose, lambda it: hasten(it, SIMULATED, owner))

    def reset(self, owner: UUID, cause: Cause) -> None:
        """Begin anew: what has ended is listed no more, and nothing is played.

        Raises LinkInUse while a link lives or is being made, RateLimited, and ServiceUnavailable
        while the lists do not have the newest of them yet.
        """
        require_projected(self.source, self.links.name, self.jobs.name, self.due_list.name)
        database, log, one = self.source.database, self.source.log, slice(0, 1)

        def record(it: Organization) -> None:
            newest = log.newest_first(owner, it.version)
            today = takewhile(lambda each: each.timestamp.date() >= cause.at.date(), newest)
            times = sum(isinstance(each, it.SandboxReset) for each in today)
            Daily(cause.at.date(), times).require_less(RESETS_MAX, cause.at, RESET_OFTEN)
            it.record(it.SandboxReset, cause)

        _, links = self.links.page(database, owner, LinkFilter(), one)
        _, ended = self.links.page(database, owner, LinkFilter(status="ended"), one)
        owners = {each.owner for each in database.read(self.due_list.all)}
        if links > ended or owner_of("link", owner) in owners:
            raise LinkInUse(STILL_LIVES)
        over: Sequence[JobStatus] = ("completed", "failed", "cancelled")
        if ended or any(self.jobs.page(database, owner, each, bool, one)[1] for each in over):
            log.update(log.get(Organization, owner), record)
        self.counters.reset_sandbox(owner)

    def happen(self, link: Link, action: str, given: Mapping[str, Any]) -> bool:
        """Let something happen to the device of a link; `given` says more of some actions.

        Tells whether it was not so already. Raises LinkEnded, NotSupportedByNetwork,
        NetworkUnavailable and ValidationFailed.
        """
        link.require_live()
        if link.network != SIMULATED:
            raise NotSupportedByNetwork
        addon, act = _addon_of(link, given.get("activation_id")), ACTIONS[action]
        try:
            return self.network.play(link.endpoint, lambda it, now: act(it, now, given, addon))
        except NoPlan:
            if action == "roam":
                raise ValidationFailed({"country_code": [NOT_COVERED]}) from None
            named = "activation_id" if "activation_id" in given else "action"
            raise ValidationFailed({named: [OVER]}) from None
        except ProviderError:
            raise NetworkUnavailable from None

    def play(self, owner: UUID, key: str | None, plan: BoughtPlan, cause: Cause) -> BoughtPlan:
        """Return the plan of the sandbox that fails as it was scripted, or the plan itself."""
        failure = self._failure_of(owner, key, plan.plan_id, cause)
        return plan if failure is None else replace(plan, provider_plan_id=PLANS[failure])


def attempts_at(operation: str, kind: str, value: object) -> str:
    """Return the name of those attempts of an operation; of a number it has only a digest."""
    text = str(value)
    digest = sha256(text.encode()).hexdigest()
    return f"{operation} {kind} {digest if kind == PHONE_NUMBER else text}"


def is_of(
    name: str,
    operation: str,
    plans: Iterable[UUID] = (),
    numbers: Iterable[str] = (),
    key: str | None = None,
) -> bool:
    """Tell whether an attempt of an operation, at these, is one of those with a name."""
    by_key = f"{operation} {KEY_PREFIX} "
    if name.startswith(by_key):
        return key is not None and key.startswith(name.removeprefix(by_key))
    ours = {attempts_at(operation, PLAN_ID, each) for each in plans}
    return name in {operation, *ours, *(attempts_at(operation, PHONE_NUMBER, it) for it in numbers)}


def _addon_of(link: Link, activation_id: UUID | None) -> str | None:
    if activation_id is None:
        return None
    for each in link.current_activations:
        if each.id == activation_id:
            return each.addon_id
    raise ValidationFailed({"activation_id": [NOT_THERE]})
