"""The plan file of operators, read as entries for the catalogue or refused with all its errors."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, TypeVar
from uuid import UUID

from domain.catalogue.checked_json import (
    Check,
    FileRefused,
    Path,
    Problem,
    Wrong,
    amount,
    every,
    flag,
    identifier,
    lines_of,
    members,
    moment,
    one_of,
    read_file,
    repeated,
    some,
    text,
    whole,
)
from domain.catalogue.plan import (
    COVERAGE_TYPES,
    LATER_PRICES_MAX,
    SIMULATED,
    CountryCoverage,
    LaterPrice,
    MobileOperator,
    PlanKey,
    PlanTerms,
    SponsorProfile,
    coverage_type_of,
    key_of,
    why_below_cost,
)
from domain.cost import Cost
from domain.money import CURRENCIES
from domain.regions import is_country

T = TypeVar("T")

PLANS_MAX = 20_000  # One transaction writes them all, and other appends wait for its end.
# A petabyte: more than any plan sells, and well within every number type.
DATA_MB_MAX = 1_000_000_000
VALIDITY_DAYS_MAX = 3_650  # Ten years; eSIMs are not sold for longer.


@dataclass(frozen=True)
class PlanRules:
    """What an installation accepts: its currency and its networks; the first is the default.

    `below_cost`: whether a plan may be sold for less than its network charges.
    """

    currency: str
    networks: Sequence[str] = (SIMULATED,)
    below_cost: bool = False


@dataclass(frozen=True)
class PlanEntry:
    """What a file says about one plan; fields that are None leave the plan as it is.

    Without `names_network`, the network in `terms` applies only to a new plan.
    """

    index: int
    id: UUID | None
    organization_id: UUID | None
    terms: PlanTerms
    enabled: bool | None
    excluded: Sequence[UUID] | None
    names_network: bool

    @property
    def key(self) -> PlanKey:
        """The key of the plan if the entry names no id."""
        terms = self.terms
        return key_of(self.organization_id, terms.provider_plan_id, terms.name, terms.network)

    @property
    def place(self) -> str:
        """Where the entry is in its file, for error texts."""
        return _place(self.index, self.terms.name)


def read_plan_file(data: bytes, rules: PlanRules) -> list[PlanEntry]:
    """Read a plan file; raises FileRefused with every error."""
    plans = read_file(data, members({"plans": _list_of_plans}))["plans"]
    entries: list[PlanEntry] = []
    lines: list[str] = []
    for index, plan in enumerate(plans):
        try:
            entries.append(_entry(index, plan, rules))
        except Wrong as wrong:
            name = plan.get("name") if isinstance(plan, dict) else None
            lines += lines_of(_place(index, name), wrong.problems)
    if lines:
        raise FileRefused(lines)
    return entries


def _list_of_plans(value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise Wrong(((), "must be a list"))
    if len(value) > PLANS_MAX:
        message = f"must be at most {PLANS_MAX}: divide the file, plans it lacks stay as they are"
        raise Wrong(((), message))
    return value


def _place(index: int, name: object) -> str:
    try:
        return f'plans[{index}] "{text(name)}"'
    except Wrong:
        return f"plans[{index}]"


def _entry(index: int, value: Any, rules: PlanRules) -> PlanEntry:
    required = {**_REQUIRED, "currency": _only(rules.currency)}
    said = members(required, {**_OPTIONAL, "network": one_of(*rules.networks)})(value)
    cost, problems = _cost(said, rules), _contradictions(said)
    if problems:
        raise Wrong(*problems)
    countries = [each.country_code for each in said["coverage"]]
    terms = PlanTerms(
        name=said["name"],
        provider_plan_id=said["provider_plan_id"],
        retail_price_micros=said["retail_price"] or 0,
        currency=said["currency"],
        data_mb=said["data_mb"],
        validity_days=said["validity_days"],
        coverage_type=said["coverage_type"] or coverage_type_of(countries),
        sponsor_profiles=said["sponsor_profiles"],
        coverage=said["coverage"],
        cost=cost,
        network=_unless_simulated(said["network"] or rules.networks[0]),
        later_prices=said["later_prices"] or None,
        unpriced=said["retail_price"] is None,
    )
    if not rules.below_cost and (losses := _losses(terms)):
        raise Wrong(*losses)
    return PlanEntry(
        index=index,
        id=said["id"],
        organization_id=said["organization_id"],
        terms=terms,
        enabled=said["enabled"],
        excluded=said["excluded_organizations"],
        names_network=said["network"] is not None,
    )


def _contradictions(said: Mapping[str, Any]) -> list[Problem]:
    """Find values that are valid alone but contradict others."""
    countries = (each.country_code for each in said["coverage"])
    profiles = (each.id for each in said["sponsor_profiles"])
    problems = [
        *repeated((("coverage", i, "country_code"), code) for i, code in enumerate(countries)),
        *repeated((("sponsor_profiles", i, "id"), each) for i, each in enumerate(profiles)),
    ]
    if said["organization_id"] is not None and said["excluded_organizations"]:
        message = "must be empty beside an organization_id, since nobody else sees the plan"
        problems.append((("excluded_organizations",), message))
    if said["cost_currency"] is not None and said["cost"] is None:
        problems.append((("cost_currency",), "needs a cost beside it"))
    if said["retail_price"] is None and (said["enabled"] or said["later_prices"]):
        message = "is needed for a plan that is enabled or has prices to come"
        problems.append((("retail_price",), message))
    starts = [each.starts_at for each in said["later_prices"] or ()]
    if any(one >= other for one, other in pairwise(starts)):
        problems.append((("later_prices",), "must be in the order of time, each once"))
    return problems


def _cost(said: Mapping[str, Any], rules: PlanRules) -> Cost | None:
    amount_micros = said["cost"]
    if amount_micros is None:
        return None
    return Cost(amount_micros, said["cost_currency"] or rules.currency)


def _losses(terms: PlanTerms) -> list[Problem]:
    """Refuse prices below the cost."""
    prices: list[tuple[Path, int]] = [
        (("later_prices", index, "retail_price"), each.retail_price_micros)
        for index, each in enumerate(terms.later_prices or ())
    ]
    if not terms.unpriced:
        prices.insert(0, (("retail_price",), terms.retail_price_micros))
    return [(path, why_below_cost(terms.cost)) for path, price in prices if terms.loses(price)]


def _unless_simulated(network: str) -> str | None:
    """Return a network as terms store it: None for the simulated one, once the only one."""
    return None if network == SIMULATED else network


def _only(currency: str) -> Check[str]:
    def check(value: Any) -> str:
        if value != currency:
            raise Wrong(((), f"must be {currency}, the currency of this installation"))
        return currency

    return check


def _currency(value: Any) -> str:
    if not isinstance(value, str) or value not in CURRENCIES:
        raise Wrong(((), "must be a currency code of ISO 4217, such as EUR"))
    return value


def _at_most(highest: int, check_list: Check[list[T]]) -> Check[list[T]]:
    def check(value: Any) -> list[T]:
        if isinstance(value, list) and len(value) > highest:
            raise Wrong(((), f"must be at most {highest}"))
        return check_list(value)

    return check


def _country(value: Any) -> str:
    if not isinstance(value, str) or not is_country(value):
        raise Wrong(((), "must be a country code of ISO 3166-1 alpha-2 (or XK), such as DE"))
    return value


_LATER_PRICE = members({"from": moment, "retail_price": amount})
PROFILE = members({"id": text, "name": text, "color": text})
_OPERATOR = members({"name": text, "network_types": every(text)})
_COUNTRY = members(
    {
        "country_code": _country,
        "operators": every(lambda value: MobileOperator(**_OPERATOR(value))),
    }
)
_REQUIRED = {
    "name": text,
    "retail_price": lambda value: None if value is None else amount(value),
    "data_mb": whole(DATA_MB_MAX),
    "validity_days": whole(VALIDITY_DAYS_MAX),
    "sponsor_profiles": every(lambda value: SponsorProfile(**PROFILE(value))),
    "coverage": some(every(lambda value: CountryCoverage(**_COUNTRY(value))), "country"),
}
_OPTIONAL = {
    "id": identifier,
    "provider_plan_id": text,
    "coverage_type": one_of(*COVERAGE_TYPES),
    "later_prices": _at_most(
        LATER_PRICES_MAX,
        every(lambda value: LaterPrice(*_LATER_PRICE(value).values())),
    ),
    "cost": amount,
    "cost_currency": _currency,
    "organization_id": identifier,
    "excluded_organizations": every(identifier),
    "enabled": flag,
}
