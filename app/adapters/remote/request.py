"""A request to a provider, its possible outcomes, and a time limit for several requests."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

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


@dataclass(frozen=True, slots=True)
class Request:
    """One request; `url` is the path with its query."""

    method: str
    url: str
    body: bytes | None
    headers: dict[str, str]


def time_left(timeout_s: float) -> Callable[[], float]:
    """Return a function that tells how many seconds are left for the calls of one operation."""
    ends_s = time.monotonic() + timeout_s
    return lambda: max(0.0, ends_s - time.monotonic())
