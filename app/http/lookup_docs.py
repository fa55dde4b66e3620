"""Examples of the lookup operations for the OpenAPI document."""

from typing import Any, Final

import msgspec

from app.http.commanding import IDEMPOTENCY_REPLAYED
from app.http.envelope import META as REPLY_META
from app.http.error_docs import RETRY_AFTER
from app.http.schemas.phone_number import NOT_E164
from app.http.wallet_replies import JOB_ID, TRANSACTION_ID
from domain import errors

SINGLE_REFUSALS: Final = (
    errors.NumberLookupDisabled(),
    errors.ValidationFailed({"phone_number": [NOT_E164]}),
    errors.NotFound(errors.KEY_ERASED),
    errors.IdempotencyKeyReused(),
    errors.BillingNotConfigured(),
    errors.InsufficientBalance(5_000, 1_000, "USD"),
    errors.IdempotencyInProgress(),
    errors.RateLimited(),
    errors.NumberLookupUnavailable(),
)
BULK_REFUSALS: Final = (
    errors.NumberLookupDisabled(),
    errors.ValidationFailed({"phone_numbers.1": ["The same number stands at index 0."]}),
    errors.NotFound(errors.KEY_ERASED),
    errors.IdempotencyKeyReused(),
    errors.RateLimited(),
    errors.BillingNotConfigured(),
    errors.InsufficientBalance(5_000_000, 1_000_000, "USD"),
)

META: Final = msgspec.to_builtins(REPLY_META)
_RESULT: Final = {
    "phone_number": "+971508245915",
    "country_code": "AE",
    "national_format": "050 824 5915",
    "valid": True,
    "carrier": {"name": "Etisalat", "type": "mobile", "mcc": "424", "mnc": "02"},
}
_LOOKUP_META: Final = {
    "lookup_id": "0d3f7e9a-2f56-5c0b-a1e1-6f6d5c4b3a29",
    "source": "live",
    "as_of": "2026-11-21T03:04:05.670Z",
    "provider": "offline",
    "charge": {"transaction_id": str(TRANSACTION_ID), "amount": "0.005", "currency": "USD"},
}
SINGLE_EXAMPLE: Final = {"success": True, "data": _RESULT, "meta": META | _LOOKUP_META}

JOB_ACCEPTED: Final[dict[str, Any]] = {
    "description": "The job is accepted, and paid.",
    "example": {"success": True, "data": {"job_id": str(JOB_ID)}, "meta": META},
    "headers": {
        "Location": {"description": "Where to poll.", "schema": {"type": "string"}},
        **RETRY_AFTER,
        **IDEMPOTENCY_REPLAYED,
    },
}
_JOB: Final = {
    "job_id": str(JOB_ID),
    "status": "processing",
    "total_count": 3,
    "processed_count": 2,
    "failed_count": 1,
    "created_at": "2026-11-21T03:04:05.100Z",
    "finished_at": None,
    "items": [
        {"phone_number": "+971508245915", "status": "completed", "result": _RESULT, "error": None},
        {
            "phone_number": "+15005550001",
            "status": "failed",
            "result": None,
            "error": errors.NumberLookupUnavailable.message,
        },
        {"phone_number": "+14155552671", "status": "pending", "result": None, "error": None},
    ],
}
JOB_READ: Final[dict[str, Any]] = {
    "description": "The job.",
    "example": {"success": True, "data": _JOB, "meta": META},
    "headers": {
        "ETag": {"description": "A weak tag of `data`.", "schema": {"type": "string"}},
        **RETRY_AFTER,
    },
}
