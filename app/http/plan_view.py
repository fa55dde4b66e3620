"""A plan as partners read it: what it offers and costs, and where it works."""

from typing import Any

from domain.countries import country_name
from domain.money import format_amount
from domain.plan import PlanTerms
from domain.regions import regions_of
from projections.plans import PlanRow

MB_PER_GB = 1000


def show_plan(row: PlanRow) -> dict[str, Any]:
    """Return a plan that its reader may see; whom else it is hidden from is nobody's business."""
    terms = row.terms
    countries = [each.country_code for each in terms.coverage]
    return {
        "id": row.id,
        "provider_plan_id": terms.provider_plan_id,
        "name": terms.name,
        "partner_cost": format_amount(terms.retail_price_micros),
        "currency": terms.currency,
        "data_gb": terms.data_mb / MB_PER_GB,
        "data_mb": terms.data_mb,
        "validity_days": terms.validity_days,
        "coverage_type": terms.coverage_type,
        "coverage": {
            "countries": countries,
            "total_countries": len(countries),
            "total_operators": _count_operators(terms),
        },
        "regions": regions_of(countries),
        "sponsor_profiles": terms.sponsor_profiles,
        "excluded_organizations": [],
    }


def show_coverage(row: PlanRow) -> dict[str, Any]:
    """Return the networks of a plan, country by country."""
    return {
        "plan_id": row.id,
        "countries": [
            {
                "country_code": each.country_code,
                "country_name": country_name(each.country_code),
                "operators": each.operators,
            }
            for each in row.terms.coverage
        ],
        "total_countries": len(row.terms.coverage),
        "total_operators": _count_operators(row.terms),
    }


def _count_operators(terms: PlanTerms) -> int:
    return sum(len(each.operators) for each in terms.coverage)
