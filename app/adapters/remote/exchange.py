"""A request to a provider and its reply, decoded into types; no error holds any content."""

import re
import time
from collections.abc import Callable, Hashable, Mapping, Sequence
from decimal import Decimal
from functools import lru_cache
from typing import Any, Literal, NamedTuple, TypeVar, cast

import msgspec

from domain.cost import ProviderBalance
from domain.money import AMOUNT_MICROS_MAX, MICROS
from domain.provider_errors import NotAnswered, NotNow, Unavailable

T = TypeVar("T")

# Where a value does not fit, by msgspec's message; the rest of the message may hold content.
FIELD_PATH = re.compile(r"`(\$[\w.\[\]]*)`\Z")
MISSING = re.compile(r"Object missing required field `(\w+)`")
CURRENCY = re.compile(r"[A-Z]{3}")
AMOUNT_MAX = AMOUNT_MICROS_MAX // MICROS
# Statuses that blame the request: about one number or one eSIM it is what the provider says of it.
BLAMES_THE_REQUEST = {400, 409, 410, 422}


class Malformed(Unavailable):
    """Raised when a reply cannot be read; after a change the adapter raises OutcomeUnknown."""


class OddRecord(Malformed, NotAnswered):
    """Raised for a reply of JSON that makes no sense; its text tells the place and no content.

    It is about one number or one eSIM and fails alone: the provider is up, and asking it again
    would give the same.
    """


class Busy(NotNow):
    """Raised when the provider's limits or our own forbid a call now; the provider is not down."""


class Unreachable(Unavailable):
    """Raised when no connection was made; nothing was sent."""


# How a call ended. `failed` is a reply of 408 or 5xx, `limited` one of 429, `answered` any other
# complete reply. `held`: not sent because of a limit. `unreachable`: not connected. `lost`: sent,
# but without a complete reply. `malformed`: more bytes than allowed.
Outcome = Literal["answered", "failed", "limited", "held", "unreachable", "lost", "malformed"]
Query = Mapping[str, str | Sequence[str]]  # A name with several values is sent once for each.


class Origin(NamedTuple):
    """Where an API is; the scheme is https, or http on this machine."""

    scheme: str
    host: str
    port: int


class Request(NamedTuple):
    """One request; `url` is the path with its query."""

    method: str
    url: str
    body: bytes | None
    headers: dict[str, str]


class Reply(msgspec.Struct, frozen=True):
    """A whole reply; the names of headers are in lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes


def time_left(timeout_s: float) -> Callable[[], float]:
    """Return a function that tells how many seconds are left for the calls of one operation."""
    ends_s = time.monotonic() + timeout_s
    return lambda: max(0.0, ends_s - time.monotonic())


def decode(reply: Reply, kind: type[T], *path: str) -> T:
    """Return what the JSON body holds below a path as a type; numbers may come as texts.

    Raises OddRecord for an object or a list that does not fit, and Malformed for any other body.
    """
    trouble = OddRecord if _is_json(reply.body) else Malformed
    return _read(reply.body, kind, path, f"a reply ({reply.status})", trouble)


def decode_entry(entry: msgspec.Raw, kind: type[T]) -> T:
    """Return one entry of a list as a type, as `decode` does; raises OddRecord."""
    return _read(bytes(entry), kind, (), "an entry", OddRecord)


def path_of(error: Exception) -> str:
    """Return the place in a record that msgspec complains of, as a JSON path."""
    found, missing = FIELD_PATH.search(str(error)), MISSING.match(str(error))
    return (found[1] if found else "$") + (f".{missing[1]}" if missing else "")


def micros_of(amount: Decimal | None) -> int | None:
    """Return an amount in micro-units, rounded half to even; None if missing or too large."""
    if amount is None or not amount.is_finite() or abs(amount) > AMOUNT_MAX:
        return None
    return int((amount * MICROS).to_integral_value())


def balance_of(amount: Decimal, currency: str) -> ProviderBalance | None:
    """Return an amount as our balance, below zero for a debt; None if it is no valid amount."""
    micros = micros_of(amount)
    if micros is None or not CURRENCY.fullmatch(currency):
        return None
    return ProviderBalance(micros, currency)


def blames_the_request(reply: Reply) -> bool:
    """Tell whether a refusal is about what was asked, and not about us."""
    return reply.status in BLAMES_THE_REQUEST and _is_json(reply.body)


def _read(
    body: bytes, kind: type[T], path: tuple[str, ...], what: str, trouble: type[Malformed]
) -> T:
    try:
        decoded = _decoder(cast("Hashable", kind), path).decode(body)
        for name in path:
            decoded = getattr(decoded, name)
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        at = path_of(error)
    else:
        return cast("T", decoded)
    # Outside the block above, so that no traceback shows the error that holds content.
    raise trouble(f"{what} cannot be read as {kind.__name__} at {at}")


def _is_json(body: bytes) -> bool:
    """Tell whether a body has the form of an object or a list; a proxy's page has not."""
    text = body.strip()
    return text[:1] + text[-1:] in {b"{}", b"[]"}


@lru_cache(256)
def _decoder(kind: Any, path: tuple[str, ...]) -> msgspec.json.Decoder[Any]:
    for name in reversed(path):
        kind = msgspec.defstruct("Envelope", [(name, kind)])
    return msgspec.json.Decoder(kind, strict=False)
