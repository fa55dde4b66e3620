"""A request to a provider, how it can end, and the time that several of them share."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

# How a call ended: `answered` is any whole reply that is not one of the others, `failed` 5xx,
# `limited` 429, `held` never sent because of a limit, `unreachable` never connected, `lost` sent
# and no whole reply, `malformed` more bytes than allowed.
Outcome = Literal["answered", "failed", "limited", "held", "unreachable", "lost", "malformed"]


Query = Mapping[str, str | Sequence[str]]  # A name with several values is sent once for each.


class Origin(NamedTuple):
    """Where an API is; the scheme is https, or http on this machine."""

    scheme: str
    host: str
    port: int


@dataclass(frozen=True, slots=True)
class Request:
    """One request; `url` is the path with its query."""

    method: str
    url: str
    body: bytes | None
    headers: dict[str, str]


def time_left(timeout_s: float) -> Callable[[], float]:
    """Return a function that tells how much is left for the calls of one operation."""
    ends_s = time.monotonic() + timeout_s
    return lambda: max(0.0, ends_s - time.monotonic())
