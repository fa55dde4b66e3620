"""Examples of the wallet operations for the OpenAPI document."""

from typing import Any, Final

from app.http.error_docs import META
from app.http.lookup_docs import JOB_ID, TRANSACTION_ID

_ENTRY: Final = {
    "id": TRANSACTION_ID,
    "sequence": 7,
    "kind": "bulk_lookup",
    "amount": "5.00",
    "direction": "debit",
    "currency": "USD",
    "charged_at": "2026-11-21T03:04:05.100Z",
    "plan_name": None,
    "description": "Bulk number lookup",
    "reference": {"type": "job", "id": JOB_ID},
    "metadata": {"count": 1000, "price_per_lookup": "0.005"},
    "balance_after": "87.50",
    "position": 4711,
}
_PAGE: Final = {
    "data": [_ENTRY],
    "meta": {"total": 7, "per_page": 1, "current_page": 1, "last_page": 7},
}


def _reply(description: str, data: object) -> dict[str, Any]:
    return {
        "description": description,
        "example": {"success": True, "data": data, "meta": META},
    }


WALLET: Final = _reply("The balance.", {"balance": "87.50", "currency": "USD"})
TRANSACTION: Final = _reply("The transaction.", _ENTRY)
TRANSACTION_PAGE: Final = _reply("A page of transactions.", _PAGE)
