"""A data plan of the catalogue: what it offers, what it costs, who may see it."""

from collections.abc import Collection, Sequence
from typing import Literal, NamedTuple, Self
from uuid import UUID

import msgspec

from domain.cause import Cause
from domain.cost import Cost
from domain.errors import NotPossible
from domain.ids import derive_id
from domain.log.aggregate import ByOperator, Created, Root
from domain.regions import regions_of

CoverageType = Literal["local", "regional", "global"]
SIMULATED = "simulated"  # The network of plans that name none.
COVERAGE_TYPES: tuple[CoverageType, ...] = ("local", "regional", "global")


class SponsorProfile(msgspec.Struct, frozen=True):
    """A profile of the network under which an eSIM runs; `color` is how it is shown."""

    id: str
    name: str
    color: str


class Operator(msgspec.Struct, frozen=True):
    """A mobile network of a country and its generations, such as `4G`."""

    name: str
    network_types: list[str]


class CountryCoverage(msgspec.Struct, frozen=True):
    """Where a plan works: an ISO 3166-1 alpha-2 code and the networks there."""

    country_code: str
    operators: list[Operator]


class PlanTerms(msgspec.Struct, frozen=True, omit_defaults=True):
    """Everything about a plan except who may see it. `data_mb` in MB, 1 GB = 1000 MB.

    `cost` is what the network takes for it, None if that is not known; no partner may see it.
    `network` None is the simulated one.
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


class PlanKey(NamedTuple):
    """By what a plan is known if no id is named; `kind` is the field that `text` comes from."""

    organization_id: UUID | None
    kind: Literal["provider_plan_id", "name"]
    text: str


class Plan(Root):
    """A data plan; global when `organization_id` is None, else that organization's own."""

    TOPIC = "plan"

    class Published(Created, ByOperator):
        TOPIC = "plan.published"

        organization_id: UUID | None
        terms: PlanTerms
        enabled: bool
        excluded_organizations: list[UUID]

        def apply(self, aggregate: "Plan") -> None:
            aggregate.organization_id = self.organization_id
            aggregate.terms = self.terms
            aggregate.enabled = self.enabled
            aggregate.excluded = set(self.excluded_organizations)

    class Changed(Root.Event, ByOperator):
        TOPIC = "plan.changed"

        terms: PlanTerms

        def apply(self, aggregate: "Plan") -> None:
            aggregate.terms = self.terms

    class Disabled(Root.Event, ByOperator):
        TOPIC = "plan.disabled"

        def apply(self, aggregate: "Plan") -> None:
            aggregate.enabled = False

    class Enabled(Root.Event, ByOperator):
        TOPIC = "plan.enabled"

        def apply(self, aggregate: "Plan") -> None:
            aggregate.enabled = True

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
        """Its key, by which it is known if no id is named."""
        return key_of(self.organization_id, self.terms.provider_plan_id, self.terms.name)

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
        """Put a plan into the catalogue."""
        assert organization_id is None or not excluded, "only a global plan excludes"
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
        """Offer other terms from now on; what was bought keeps its old terms."""
        if terms != self.terms:
            self.record(self.Changed, cause, terms=terms)

    def switch(self, cause: Cause, *, enabled: bool) -> None:
        """Offer the plan, or stop offering it."""
        if enabled != self.enabled:
            self.record(self.Enabled if enabled else self.Disabled, cause)

    def exclude(self, organization_id: UUID, cause: Cause) -> None:
        """Hide a global plan from an organization; NotPossible for a plan that has an owner."""
        if self.organization_id is not None:
            message = f"plan {self.id} is not global: only its own organization sees it"
            raise NotPossible(message)
        if organization_id not in self.excluded:
            self.record(self.OrganizationExcluded, cause, organization_id=organization_id)

    def include(self, organization_id: UUID, cause: Cause) -> None:
        """Show it to an organization again."""
        if organization_id in self.excluded:
            self.record(self.OrganizationIncluded, cause, organization_id=organization_id)


def key_of(organization_id: UUID | None, provider_plan_id: str | None, name: str) -> PlanKey:
    """Return the key of a plan: its id at the provider, or its name if it has none."""
    if provider_plan_id is not None:
        return PlanKey(organization_id, "provider_plan_id", provider_plan_id)
    return PlanKey(organization_id, "name", name)


def plan_id(key: PlanKey) -> UUID:
    """Return the stream of a plan that was imported without an id."""
    return derive_id("plan", key.organization_id or "", key.kind, key.text)


def coverage_type_of(countries: Collection[str]) -> CoverageType:
    """Return the coverage type of countries: one, several of one region, or several regions."""
    if len(countries) == 1:
        return "local"
    return "regional" if len(regions_of(countries)) == 1 else "global"
