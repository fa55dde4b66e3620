"""Examples of the link operations for the OpenAPI document."""

from typing import Any, Final

from app.http.envelope import META as REPLY_META
from app.http.error_docs import META
from app.http.link_view import ANDROID, APPLE
from app.http.lookup_docs import IDEMPOTENCY_REPLAYED
from app.http.paging import PageMeta
from app.http.plan_docs import COVERAGE, PLAN, PLAN_ID
from app.http.schemas.link_input import NOT_A_FLAG, STATUSES
from app.http.schemas.plan import NOT_A_COUNTRY
from app.http.wallet_replies import (
    TRANSACTION_ID,
    Reference,
    Transaction,
    TransactionPage,
    TransactionPageReply,
)
from domain import errors
from domain.commands.link_plans import NOT_THERE
from domain.commands.offers import INCOMPATIBLE, UNKNOWN
from domain.commands.waiting import SHARE

LINK_ID: Final = "1f0c9a44-7d3b-5e0a-9b61-2f7f0e5c8d13"
ACTIVATION_ID: Final = "c3a1f6d2-58e4-5b7c-8f02-6a9d4e1b7c30"

_BALANCE: Final = errors.InsufficientBalance(4_500_000, 1_000_000, "USD")
_BACK: Final = "4.50 USD has been refunded"
_DONE: Final[dict[str, Any]] = {"refunded": "4.50", "removed": [ACTIVATION_ID], "added": []}

_PAGE: Final = errors.ValidationFailed({"per_page": ["Must be a whole number from 1 to 100."]})
LIST_REFUSALS: Final = (
    errors.ValidationFailed({"status": [f"Must be one of: {', '.join(STATUSES)}."]}),
)
CREATE_REFUSALS: Final = (
    errors.ValidationFailed({"plan_id": [UNKNOWN]}),
    errors.IdempotencyKeyReused(),
    errors.BillingNotConfigured(),
    errors.RateLimited(SHARE),
    errors.ConfigError(),
    _BALANCE,
    errors.IdempotencyInProgress(),
    errors.ProvisioningFailed(_BACK, refunded="4.50"),
    errors.ProvisioningError(errors.NO_ESIM, "nothing was taken", refunded="0.00"),
)
CHANGE_REFUSALS: Final = (
    errors.NotFound(),
    errors.ValidationFailed({"remove.0": [NOT_THERE], "add.1": [INCOMPATIBLE]}),
    errors.IdempotencyKeyReused(),
    errors.BillingNotConfigured(),
    errors.RateLimited(SHARE),
    _BALANCE,
    errors.IdempotencyInProgress(),
    errors.ProvisioningFailed(_BACK, "what was done before it stays", **_DONE),
    errors.ProvisioningError(errors.LATE, _BACK, "what was done before it stays", **_DONE),
)
SWITCH_REFUSALS: Final = (
    errors.NotFound(),
    errors.ValidationFailed({"status": ["Unknown field."]}),
    errors.RateLimited(SHARE),
    errors.ProvisioningError(errors.UNREACHABLE, "the status is unchanged"),
)
PAGE_REFUSALS: Final = (errors.NotFound(), _PAGE)
TOPUP_REFUSALS: Final = (
    errors.NotFound(),
    errors.ValidationFailed({"country": [NOT_A_COUNTRY]}),
)
STATUS_REFUSALS: Final = (
    errors.NotFound(),
    errors.ValidationFailed({"live": [NOT_A_FLAG]}),
    errors.RateLimited(SHARE),
    errors.NetworkUnavailable(),
)

_PLAN: Final = PLAN["example"]["data"]
_LPA: Final = "LPA:1$rsp.example$JQ-XK2F"
_CARDDATA: Final = "LPA%3A1%24rsp.example%24JQ-XK2F"
_LINK: Final = {
    "id": LINK_ID,
    "name": "Van 12",
    "iccid": "8988399901234567897",
    "msisdn": "+883999765432109",
    "status": "active",
    "created_at": "2026-11-21T03:04:05.100Z",
    "sponsor_profile": _PLAN["sponsor_profiles"][0],
    "lpa_profile": _LPA,
    "apple_activation_url": APPLE + _CARDDATA,
    "android_activation_url": ANDROID + _CARDDATA,
    "data_used_mb": 104.2,
    "data_remaining_mb": 4895.8,
    "data_total_mb": 5000.0,
    "expires_at": "2026-12-21T03:06:20.000Z",
    "installed_at": "2026-11-21T03:05:10.000Z",
    "first_used_at": "2026-11-21T03:06:20.000Z",
    "usage_as_of": "2026-11-22T08:00:00.000Z",
}
_ACTIVATION: Final = {
    "id": ACTIVATION_ID,
    "plan_id": PLAN_ID,
    "plan_name": _PLAN["name"],
    "status": "active",
    "activation_date": _LINK["created_at"],
    "expiry_date": "2026-12-21T03:06:20.000Z",
    "data_used_mb": 104.2,
    "data_remaining_mb": 4895.8,
    "coverage_countries": _PLAN["coverage"]["countries"],
}
_DETAIL: Final = {
    **_LINK,
    "activations": [_ACTIVATION],
    "coverage_data": COVERAGE["example"]["data"]["countries"],
}
_PAID: Final = {"amount_charged": "4.50", "currency": "USD"}
_UNUSED: Final = {
    "data_used_mb": 0.0,
    "data_remaining_mb": 5000.0,
}
_NEW: Final = {
    **_DETAIL,
    **_UNUSED,
    "expires_at": None,
    "installed_at": None,
    "first_used_at": None,
    "usage_as_of": _LINK["created_at"],
    "activations": [{**_ACTIVATION, **_UNUSED, "expiry_date": None}],
    "activation_url": _LINK["apple_activation_url"],
    **_PAID,
}
_ENTRY: Final = Transaction(
    id=TRANSACTION_ID,
    sequence=8,
    kind="activation",
    amount="4.50",
    direction="debit",
    currency="USD",
    charged_at="2026-11-21T03:04:05.040Z",
    plan_name=_PLAN["name"],
    description=f"Activation: {_PLAN['name']}",
    reference=Reference("link", LINK_ID),
    metadata={"link_id": LINK_ID, "plan_id": PLAN_ID, "plan_name": _PLAN["name"]},
    balance_after="83.00",
    position=4811,
)
_STATUS: Final = {
    "link_id": LINK_ID,
    "iccid": _LINK["iccid"],
    "status": "active",
    "connected": True,
    "network": {
        "country_code": "FR",
        "operator": "Orange",
        "mcc": "208",
        "mnc": "01",
        "radio": "5G",
    },
    "last_seen_at": "2026-11-22T08:00:00.000Z",
    "as_of": "2026-11-22T08:00:00.000Z",
    "cached": False,
}


def _reply(description: str, data: object, **headers: dict[str, Any]) -> dict[str, Any]:
    example = {"success": True, "data": data, "meta": META}
    return {
        "description": description,
        "example": example,
        **({"headers": headers} if headers else {}),
    }


def _page(item: object, per_page: int) -> dict[str, Any]:
    meta = {"total": 1, "per_page": per_page, "current_page": 1, "last_page": 1}
    return {"data": [item], "meta": meta}


_LOCATION: Final = {"Location": {"description": "Where it is.", "schema": {"type": "string"}}}

LINK: Final = _reply("The link.", _DETAIL)
LINK_PAGE: Final = _reply("A page of links.", _page(_LINK, 20))
CREATED: Final = _reply("The link is active, and paid.", _NEW, **_LOCATION, **IDEMPOTENCY_REPLAYED)
CHANGED: Final = _reply("The link as it is now.", {**_DETAIL, **_PAID}, **IDEMPOTENCY_REPLAYED)
TOPUP_PLANS: Final = _reply("The plans.", [_PLAN])
HISTORY: Final = TransactionPageReply(
    data=TransactionPage([_ENTRY], PageMeta(total=1, per_page=15, current_page=1, last_page=1)),
    meta=REPLY_META,
)
NETWORK_STATUS: Final = _reply("The network status.", _STATUS)
