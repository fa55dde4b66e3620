"""Copies the plans that a network supplies into the catalogue; only operators change prices."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from math import ceil
from uuid import UUID

from msgspec.structs import replace

from domain.catalogue.plan import (
    DATA_MB,
    DATA_MB_MAX,
    SIMULATED,
    TEXT,
    VALIDITY_DAYS,
    VALIDITY_DAYS_MAX,
    CountryCoverage,
    MobileOperator,
    Plan,
    PlanTerms,
    coverage_type_of,
    is_text,
)
from domain.catalogue.supplied import OddEntry, Supplied, SuppliedCountry, SuppliedPlan
from domain.cause import Cause
from domain.cost import Cost
from domain.ids import derive_id
from domain.log.aggregate import Root
from domain.log.log import Log
from domain.money import AMOUNT_MICROS_MAX
from domain.regions import is_country

UNLIMITED = "has no limit of data, and a plan here has one"
NO_COUNTRY = "covers no country that we know"
TWICE = "is listed twice"
RENAMED = "was brought before, and that plan has another provider_plan_id now"
TOO_DEAR = "costs more than a plan can"
COSTS_NOTHING = "costs 0, so a markup would sell it at 0"


@dataclass(frozen=True)
class Markup:
    """How a plan without a price gets one: cost plus `share` of it, rounded up to `step_micros`.

    `rates` give the value of one unit of another currency in ours.
    """

    share: Fraction
    step_micros: int
    rates: Mapping[str, Fraction] = field(default_factory=dict)

    def price_of(self, cost: Cost, currency: str) -> int | None:
        """Return a price in our currency; None if there is no rate."""
        rate = Fraction(1) if cost.currency == currency else self.rates.get(cost.currency)
        if rate is None:
            return None
        return (
            ceil(cost.amount_micros * rate * (1 + self.share) / self.step_micros) * self.step_micros
        )


@dataclass(frozen=True)
class SyncRules:
    """Which network to sync, and our currency; without a markup new plans get no price."""

    network: str
    currency: str
    markup: Markup | None = None
    with_notices: bool = False  # Whether plans that need a notice are enabled too.


@dataclass(frozen=True)
class Skipped:
    """A supplied plan that was not copied, or a part of a catalogue, and why."""

    provider_plan_id: str | None
    name: str | None
    reason: str


@dataclass
class Synced:
    """What a sync changed in the catalogue, and what it found wrong with plans on sale.

    The network no longer has the `withdrawn` plans; we sell those `below_cost` at a loss.
    """

    created: list[Plan] = field(default_factory=list)
    updated: list[Plan] = field(default_factory=list)
    other_costs: list[tuple[Plan, PlanTerms]] = field(default_factory=list)  # As it was before.
    unchanged: int = 0
    below_cost: list[Plan] = field(default_factory=list)
    withdrawn: list[Plan] = field(default_factory=list)
    skipped: list[Skipped] = field(default_factory=list)

    @property
    def changed(self) -> list[Plan]:
        return [*self.created, *self.updated]


def sync(
    log: Log, ours: Iterable[Plan], supplied: Sequence[Supplied], rules: SyncRules, cause: Cause
) -> Synced:
    """Update our plans to what their network supplies, and create new ones.

    The network decides data, validity, coverage and cost; we decide name, price, profiles and who
    may see the plan. Nothing is appended here.
    """
    found, listed = Synced(), set[str]()
    known = _by_provider_id(ours, rules.network)
    odd = [each for each in supplied if isinstance(each, OddEntry)]
    for each in (plan for plan in supplied if isinstance(plan, SuppliedPlan)):
        reason = TWICE if each.provider_plan_id in listed else _unfit(each)
        listed.add(each.provider_plan_id)
        if reason is None:
            reason = _bring(log, each, known.get(each.provider_plan_id, ()), rules, cause, found)
        if reason is not None:
            found.skipped.append(Skipped(each.provider_plan_id, each.name, reason))
    found.skipped += [Skipped(each.provider_plan_id, None, each.reason) for each in odd]
    listed |= {each.provider_plan_id for each in odd if each.provider_plan_id is not None}
    on_sale = [plan for plans in (*known.values(), found.created) for plan in plans if plan.enabled]
    found.withdrawn = [plan for plan in on_sale if plan.terms.provider_plan_id not in listed]
    now = ((plan, plan.terms.at(cause.at)) for plan in on_sale)
    found.below_cost = [plan for plan, terms in now if terms.loses(terms.retail_price_micros)]
    return found


def _by_provider_id(ours: Iterable[Plan], network: str) -> Mapping[str, Sequence[Plan]]:
    found: dict[str, list[Plan]] = {}
    for plan in ours:
        provider_plan_id = plan.terms.provider_plan_id
        if provider_plan_id is not None and (plan.terms.network or SIMULATED) == network:
            found.setdefault(provider_plan_id, []).append(plan)
    return found


def _unfit(supplied: SuppliedPlan) -> str | None:
    """Return why a plan cannot be sold here, by the rules of a plan file; None if it can."""
    if supplied.data_mb is None:
        return UNLIMITED
    if not _countries(supplied.coverage):
        return ": ".join([NO_COUNTRY, ", ".join(each.country_code for each in supplied.coverage)])
    for name, fits, rule in (
        ("provider_plan_id", is_text(supplied.provider_plan_id), TEXT),
        ("name", is_text(supplied.name), TEXT),
        ("data_mb", 1 <= supplied.data_mb <= DATA_MB_MAX, DATA_MB),
        ("validity_days", 1 <= supplied.validity_days <= VALIDITY_DAYS_MAX, VALIDITY_DAYS),
    ):
        if not fits:
            return f"{name} {rule}"
    return None


def _bring(  # noqa: PLR0913  # Each is what the decision needs.
    log: Log,
    supplied: SuppliedPlan,
    ours: Sequence[Plan],
    rules: SyncRules,
    cause: Cause,
    found: Synced,
) -> str | None:
    """Create or change the plans for a supplied plan; return the reason if that fails."""
    cost, markup = supplied.cost, rules.markup
    price = markup.price_of(cost, rules.currency) if markup and cost else None
    if price == 0:
        return COSTS_NOTHING
    if price is not None and price > AMOUNT_MICROS_MAX:
        return TOO_DEAR
    if not ours:
        plan_id = derive_id("plan", rules.network, supplied.provider_plan_id)
        if log.find(Root, plan_id) is not None:
            return RENAMED
        found.created.append(_publish(plan_id, supplied, price, rules, cause))
    for plan in ours:
        before = plan.terms
        plan.change(_terms(before.at(cause.at), supplied), cause)
        if plan.terms.unpriced and price is not None:
            plan.price(price, cause)
            plan.switch(cause, enabled=_is_offered(supplied, rules))
        if plan.pending_events:
            found.updated.append(plan)
            if _amount(before.cost) != _amount(plan.terms.cost):
                found.other_costs.append((plan, before))
        else:
            found.unchanged += 1
    return None


def _publish(
    plan_id: UUID, supplied: SuppliedPlan, price: int | None, rules: SyncRules, cause: Cause
) -> Plan:
    coverage = _countries(supplied.coverage)
    assert supplied.data_mb is not None
    terms = PlanTerms(
        name=supplied.name,
        provider_plan_id=supplied.provider_plan_id,
        retail_price_micros=price or 0,
        currency=rules.currency,
        data_mb=supplied.data_mb,
        validity_days=supplied.validity_days,
        coverage_type=coverage_type_of([each.country_code for each in coverage]),
        sponsor_profiles=[],
        coverage=coverage,
        cost=supplied.cost,
        network=None if rules.network == SIMULATED else rules.network,
        unpriced=price is None,
        notices=[*supplied.notices] or None,
    )
    enabled = price is not None and _is_offered(supplied, rules)
    return Plan.publish(plan_id, cause, organization_id=None, terms=terms, enabled=enabled)


def _is_offered(supplied: SuppliedPlan, rules: SyncRules) -> bool:
    return rules.with_notices or not supplied.notices


def _terms(now: PlanTerms, supplied: SuppliedPlan) -> PlanTerms:
    """Return the terms with the network's part replaced; a coverage type set by hand stays."""
    assert supplied.data_mb is not None
    coverage = _countries(supplied.coverage)
    kind = now.coverage_type
    if kind == coverage_type_of([each.country_code for each in now.coverage]):
        kind = coverage_type_of([each.country_code for each in coverage])
    return replace(
        now,
        data_mb=supplied.data_mb,
        validity_days=supplied.validity_days,
        coverage_type=kind,
        coverage=coverage,
        notices=[*supplied.notices] or None,
        cost=now.cost if _amount(supplied.cost) in {None, _amount(now.cost)} else supplied.cost,
    )


def _amount(cost: Cost | None) -> tuple[int, str] | None:
    return None if cost is None else (cost.amount_micros, cost.currency)


def _countries(supplied: Sequence[SuppliedCountry]) -> list[CountryCoverage]:
    """Return the coverage sorted, because a network may list it in a different order each time."""
    found: dict[str, dict[str, list[str]]] = {}
    for each in supplied:
        if is_country(each.country_code):
            operators = found.setdefault(each.country_code, {})
            operators |= {name: list(kinds) for name, kinds in each.operators}
    return [
        CountryCoverage(code, [MobileOperator(*each) for each in sorted(operators.items())])
        for code, operators in sorted(found.items())
    ]
