"""A data plan of the catalogue: what it offers, what it costs, who may see it."""

from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Literal, NamedTuple, Self
from uuid import UUID

import msgspec
from msgspec.structs import replace

from domain.cause import Cause
from domain.cost import Cost
from domain.errors import NotPossible
from domain.ids import derive_id
from domain.log.aggregate import ByOperator, Created, Root, sets
from domain.money import format_amount
from domain.regions import regions_of

CoverageType = Literal["local", "regional", "global"]
SIMULATED = "simulated"  # The network of plans that name none.
LATER_PRICES_MAX = 24  # Two years of monthly prices; every event of the plan carries them.
# A petabyte: more than any plan sells, and well within every number type.
DATA_MB_MAX = 1_000_000_000
VALIDITY_DAYS_MAX = 3_650  # Ten years; eSIMs are not sold for longer.
DATA_MB = f"must be a whole number from 1 to {DATA_MB_MAX}"
VALIDITY_DAYS = f"must be a whole number from 1 to {VALIDITY_DAYS_MAX}"
TEXT_CHARS_MAX = 255
TEXT = f"must be text of 1 to {TEXT_CHARS_MAX} printable characters, no space around it"
COVERAGE_TYPES: tuple[CoverageType, ...] = ("local", "regional", "global")


class SponsorProfile(msgspec.Struct, frozen=True):
    """A profile of the network under which an eSIM runs; `color` is how it is shown."""

    id: str
    name: str
    color: str


class MobileOperator(msgspec.Struct, frozen=True):
    """A mobile network of a country and its generations, such as `4G`."""

    name: str
    network_types: list[str]


class CountryCoverage(msgspec.Struct, frozen=True):
    """Where a plan works: an ISO 3166-1 alpha-2 code and the networks there."""

    country_code: str
    operators: list[MobileOperator]


class LaterPrice(msgspec.Struct, frozen=True):
    """A price that takes effect at a moment."""

    starts_at: datetime
    retail_price_micros: int


class PlanTerms(msgspec.Struct, frozen=True, omit_defaults=True):
    """Everything about a plan except who may see it. `data_mb` in MB, 1 GB = 1000 MB.

    `cost` is what the network charges us, None if that is not known; no partner may see it.
    `network` None is the simulated one. `later_prices` are in order of time; `at` returns the terms
    of a moment. An `unpriced` plan has no price yet and cannot be offered; its stored price is 0.
    `notices` are what a traveller must know of it, by its network (`supplied.NOTICES`).
    """

    name: str
    provider_plan_id: str | None
    retail_price_micros: int
    currency: str
    data_mb: int
    validity_days: int
    coverage_type: CoverageType
    sponsor_profiles: list[SponsorProfile]
    coverage: list[CountryCoverage]
    cost: Cost | None = None
    network: str | None = None
    later_prices: list[LaterPrice] | None = None
    unpriced: bool = False
    notices: list[str] | None = None

    def at(self, moment: datetime) -> "PlanTerms":
        """Return the terms that hold at a moment, with the prices that are still to come."""
        prices = self.later_prices or []
        started = [each for each in prices if each.starts_at <= moment]
        if not started:
            return self
        price_micros, left = started[-1].retail_price_micros, prices[len(started) :]
        return replace(self, retail_price_micros=price_micros, later_prices=left or None)

    def loses(self, price_micros: int) -> bool:
        """Tell whether a price is below the cost; a cost in another currency never counts."""
        if self.cost is None or self.cost.currency != self.currency:
            return False
        return price_micros < self.cost.amount_micros


class PlanKey(NamedTuple):
    """How a plan is found if no id is named; `kind` is the field that `text` comes from."""

    organization_id: UUID | None
    kind: Literal["provider_plan_id", "name"]
    text: str
    network: str | None = None  # Of a `provider_plan_id`; None: the simulated one.

    def is_of(self, network: str) -> bool:
        return self.kind == "provider_plan_id" and (self.network or SIMULATED) == network


class Plan(Root):
    """A data plan; global when `organization_id` is None, else that organization's own."""

    TOPIC = "plan"

    class Published(Created, ByOperator):
        TOPIC = "plan.published"
        SETS = sets(
            *("organization_id", "terms", "enabled"),
            excluded=lambda event: set(event.excluded_organizations),
        )

        organization_id: UUID | None
        terms: PlanTerms
        enabled: bool
        excluded_organizations: list[UUID]

    class Changed(Root.Event, ByOperator):
        TOPIC = "plan.changed"
        SETS = sets("terms")

        terms: PlanTerms

    class Disabled(Root.Event, ByOperator):
        TOPIC = "plan.disabled"
        SETS = sets(enabled=False)

    class Enabled(Root.Event, ByOperator):
        TOPIC = "plan.enabled"
        SETS = sets(enabled=True)

    class OrganizationExcluded(Root.Event, ByOperator):
        TOPIC = "plan.organization_excluded"

        organization_id: UUID

        def apply(self, aggregate: "Plan") -> None:
            aggregate.excluded.add(self.organization_id)

    class OrganizationIncluded(Root.Event, ByOperator):
        TOPIC = "plan.organization_included"

        organization_id: UUID

        def apply(self, aggregate: "Plan") -> None:
            aggregate.excluded.discard(self.organization_id)

    organization_id: UUID | None
    terms: PlanTerms
    enabled: bool
    excluded: set[UUID]

    @property
    def key(self) -> PlanKey:
        terms = self.terms
        return key_of(self.organization_id, terms.provider_plan_id, terms.name, terms.network)

    @classmethod
    def publish(  # noqa: PLR0913  # An event is whole: each argument is one of its facts.
        cls,
        plan_id: UUID,
        cause: Cause,
        *,
        organization_id: UUID | None,
        terms: PlanTerms,
        enabled: bool = True,
        excluded: Sequence[UUID] = (),
    ) -> Self:
        assert organization_id is None or not excluded, "only a global plan excludes"
        assert not (enabled and terms.unpriced), "nobody can buy what has no price"
        return cls.begin(
            cls.Published,
            cause,
            plan_id,
            organization_id=organization_id,
            terms=terms,
            enabled=enabled,
            excluded_organizations=sorted(set(excluded), key=str),
        )

    def change(self, terms: PlanTerms, cause: Cause) -> None:
        """Offer other terms from now on; what was bought keeps its old terms.

        Raises NotPossible if they have no price and the plan has one.
        """
        terms = terms.at(cause.at)
        if terms.unpriced and not self.terms.unpriced:
            message = f"plan {self.id} has a price, which can be changed but not taken away"
            raise NotPossible(message)
        if terms != self.terms.at(cause.at):
            self.record(self.Changed, cause, terms=terms)

    def price(
        self,
        price_micros: int,
        cause: Cause,
        *,
        starts_at: datetime | None = None,
        below_cost: bool = False,
    ) -> None:
        """Set the price from a moment on, or from now on; the first price also enables the plan.

        A price from now on replaces all later prices. Raises NotPossible for a price below the
        cost, unless `below_cost`, and for a moment that has passed.
        """
        terms = self.terms.at(cause.at)
        if terms.loses(price_micros) and not below_cost:
            raise NotPossible(why_below_cost(terms.cost))
        if starts_at is None:
            was_unpriced = terms.unpriced
            changed = replace(
                terms, retail_price_micros=price_micros, later_prices=None, unpriced=False
            )
            self.change(changed, cause)
            if was_unpriced:
                self.switch(cause, enabled=True)
        elif starts_at > cause.at:
            self.change(self._priced_later(terms, LaterPrice(starts_at, price_micros)), cause)
        elif terms.retail_price_micros != price_micros:
            message = f"{starts_at.isoformat()} has passed; without a time the price holds from now"
            raise NotPossible(message)

    def _priced_later(self, terms: PlanTerms, price: LaterPrice) -> PlanTerms:
        if terms.unpriced:
            message = f"plan {self.id} has no price yet; give it one that holds from now on first"
            raise NotPossible(message)
        others = [e for e in terms.later_prices or () if e.starts_at != price.starts_at]
        if len(others) >= LATER_PRICES_MAX:
            raise NotPossible(f"plan {self.id} has {LATER_PRICES_MAX} prices to come already")
        prices = sorted([*others, price], key=lambda each: each.starts_at)
        return replace(terms, later_prices=prices)

    def switch(self, cause: Cause, *, enabled: bool) -> None:
        """Offer the plan, or stop offering it; NotPossible for one that has no price yet."""
        if enabled and self.terms.unpriced:
            raise NotPossible(f"plan {self.id} has no price yet: see plans set --price")
        if enabled != self.enabled:
            self.record(self.Enabled if enabled else self.Disabled, cause)

    def exclude(self, organization_id: UUID, cause: Cause) -> None:
        """Hide a global plan from an organization; NotPossible for a plan that has an owner."""
        if self.organization_id is not None:
            raise NotPossible(f"plan {self.id} is not global: only its own organization sees it")
        if organization_id not in self.excluded:
            self.record(self.OrganizationExcluded, cause, organization_id=organization_id)

    def hide_from(self, organization_ids: Collection[UUID], cause: Cause) -> None:
        """Hide it from these organizations, and show it to all others; raises as `exclude`."""
        for each in sorted({*organization_ids} - self.excluded, key=str):
            self.exclude(each, cause)
        for each in sorted(self.excluded - {*organization_ids}, key=str):
            self.record(self.OrganizationIncluded, cause, organization_id=each)


def why_below_cost(cost: Cost | None) -> str:
    assert cost is not None
    amount = f"{format_amount(cost.amount_micros)} {cost.currency}"
    return f"is below the cost of {amount}; --below-cost allows that"


def key_of(
    organization_id: UUID | None,
    provider_plan_id: str | None,
    name: str,
    network: str | None = None,
) -> PlanKey:
    """Return the key of a plan: its id at its network, or its name if it has none."""
    if provider_plan_id is not None:
        return PlanKey(organization_id, "provider_plan_id", provider_plan_id, network)
    return PlanKey(organization_id, "name", name)


def plan_id(key: PlanKey) -> UUID:
    """Return the stream of a plan that was imported without an id."""
    network = [] if key.network is None else [key.network]
    return derive_id("plan", key.organization_id or "", key.kind, key.text, *network)


def coverage_type_of(countries: Collection[str]) -> CoverageType:
    """Return the coverage type of countries: one, several of one region, or several regions."""
    if len(countries) == 1:
        return "local"
    return "regional" if len(regions_of(countries)) == 1 else "global"


def is_text(value: object) -> bool:
    """Tell whether this is one line of text that people or programs will read, as `TEXT` says."""
    return (
        isinstance(value, str)
        and 1 <= len(value) <= TEXT_CHARS_MAX
        and value.isprintable()
        and value == value.strip()
    )
