"""A reply of a provider's API, and its decoding into types; no error holds any content."""

import re
from collections.abc import Hashable, Mapping
from functools import lru_cache
from typing import Any, TypeVar, cast

import msgspec

from domain.provider_errors import NotNow, Unavailable

T = TypeVar("T")

# The place in msgspec's message at which a value does not fit; the rest may hold content.
PLACE = re.compile(r"`(\$[\w.\[\]]*)`")


class Malformed(Unavailable):
    """Raised when a reply cannot be read; after a change the adapter raises OutcomeUnknown."""


class Busy(NotNow):
    """Raised when the provider's limits or our own forbid a call now; the provider is not down."""


class Unreachable(Unavailable):
    """Raised when no connection was made; nothing was sent."""


class Reply(msgspec.Struct, frozen=True):
    """A whole reply; the names of headers are in lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes


def decode(reply: Reply, kind: type[T]) -> T:
    """Return the JSON body as a type; raises Malformed, which tells the place but no content."""
    try:
        decoded: T = _decoder(cast("Hashable", kind)).decode(reply.body)
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        found = PLACE.search(str(error))
    else:
        return decoded
    where = f" at {found[1]}" if found else ""
    # Outside the block above, so that no traceback shows the error that holds content.
    message = f"a reply ({reply.status}) cannot be read as {kind.__name__}{where}"
    raise Malformed(message)


@lru_cache(256)
def _decoder(kind: Any) -> msgspec.json.Decoder[Any]:
    return msgspec.json.Decoder(kind)
