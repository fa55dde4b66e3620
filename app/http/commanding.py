"""What views hand to the commands of the domain, and how they say that an outcome is an old one."""

from typing import Final

from app.http.request_context import container, request_context
from domain.cause import Cause

REPLAYED: Final = {"Idempotency-Replayed": "true"}
IDEMPOTENCY_REPLAYED: Final = {
    "Idempotency-Replayed": {
        "description": "`true` when this is the outcome of an earlier request with the key.",
        "schema": {"type": "string", "enum": ["true"]},
    }
}


def current_cause() -> Cause:
    """Return the cause of what this request makes happen."""
    return Cause(container().clock(), request_context().request_id)


def replay_headers(replayed: bool) -> dict[str, str]:  # noqa: FBT001 - what a command has returned.
    """Return the headers of an outcome that an earlier request with the key may have had."""
    return REPLAYED if replayed else {}
