"""Examples of the plan operations for the OpenAPI document."""

from typing import Any, Final

from app.http.error_docs import META
from app.http.schemas.plan import NOT_A_COUNTRY
from domain import errors

PLAN_ID: Final = "5b0e6a3c-9d1f-5c47-8f5e-2f4a7c9b1d60"
LIST_REFUSALS: Final = (errors.ValidationFailed({"country": [NOT_A_COUNTRY]}),)
NOT_MODIFIED: Final = "`data` is what the ETag of `If-None-Match` stands for."

_OPERATORS: Final = [
    {"name": "Orange", "network_types": ["4G", "5G"]},
    {"name": "SFR", "network_types": ["4G"]},
]
_TOTALS: Final = {"total_countries": 2, "total_operators": 3}
_PLAN: Final = {
    "id": PLAN_ID,
    "provider_plan_id": "eu-5gb-30d",
    "name": "France and Monaco 5 GB",
    "partner_cost": "4.50",
    "currency": "USD",
    "data_gb": 5.0,
    "data_mb": 5000,
    "validity_days": 30,
    "coverage_type": "regional",
    "coverage": {"countries": ["FR", "MC"], **_TOTALS},
    "regions": ["EU"],
    "sponsor_profiles": [{"id": "sp-atlas", "name": "Atlas", "color": "#1F6FEB"}],
    "excluded_organizations": [],
}
_COVERAGE: Final = {
    "plan_id": PLAN_ID,
    "countries": [
        {"country_code": "FR", "country_name": "France", "operators": _OPERATORS},
        {
            "country_code": "MC",
            "country_name": "Monaco",
            "operators": [{"name": "Monaco Telecom", "network_types": ["4G", "5G"]}],
        },
    ],
    **_TOTALS,
}
_PAGE: Final = {
    "data": [_PLAN],
    "meta": {"total": 1, "per_page": 50, "current_page": 1, "last_page": 1},
}
_REGIONS: Final = [
    {"code": "NA", "label": "North America", "countries": ["BM", "CA", "GL", "PM", "US"]}
]


def _reply(description: str, data: object) -> dict[str, Any]:
    return {
        "description": description,
        "example": {"success": True, "data": data, "meta": META},
        "headers": {"ETag": {"description": "A weak tag of `data`.", "schema": {"type": "string"}}},
    }


PLAN: Final = _reply("The plan.", _PLAN)
PLAN_PAGE: Final = _reply("A page of plans.", _PAGE)
COVERAGE: Final = _reply("Where the plan works.", _COVERAGE)
REGION_LIST: Final = _reply("The regions.", _REGIONS)
