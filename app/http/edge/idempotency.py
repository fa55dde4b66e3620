"""Idempotency over HTTP: the header that asks for it, and the one that marks a replay."""

import re
from typing import Final

from marshmallow import Schema, fields, validate

from app.http.edge.input import described

REPLAYED: Final = {"Idempotency-Replayed": "true"}
IDEMPOTENCY_REPLAYED: Final = {
    "Idempotency-Replayed": {
        "description": "`true` when this is the outcome of an earlier request with the key.",
        "schema": {"type": "string", "enum": ["true"]},
    }
}


def replay_headers(replayed: bool) -> dict[str, str]:  # noqa: FBT001 - As a command has returned it.
    """Return the headers of an outcome; `replayed`: an earlier request with the key had it."""
    return REPLAYED if replayed else {}


KEY = r"^[!-~]{1,255}$"  # No header contains a line break, which `$` would accept.
_KEY = re.compile(KEY)
NOT_A_KEY = "Must be 1 to 255 visible ASCII characters."


def is_key(text: str) -> bool:
    """Tell whether a header holds a key."""
    return _KEY.match(text) is not None


class IdempotencyHeader(Schema):
    """The key under which a request may be sent again without being charged again."""

    key = fields.String(
        data_key="Idempotency-Key",
        validate=validate.Regexp(KEY, error=NOT_A_KEY),
        metadata=described(
            "Any text of your own, new for each lookup, job, link or change of plans. The same key "
            "with the same request gives the first outcome again, without a second charge.",
        ),  # No example: the page at /docs would fill it in, and a second try would collide.
    )
