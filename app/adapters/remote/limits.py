"""When a provider may be called again, by the rate-limit headers of its replies."""

import time
from collections.abc import Mapping
from contextlib import suppress
from datetime import datetime
from email.utils import parsedate_to_datetime
from threading import Lock

from domain.cause import Clock

HOLD_S_MAX = 300.0  # A wrong header must not keep a provider out for longer.
EPOCH_S_MIN = 1_000_000_000  # A larger number is a moment since 1970, in seconds.
EPOCH_MS_MIN = EPOCH_S_MIN * 1_000  # The same in milliseconds.
# Where replies say how many calls are left, and when there are more (RFC 9110 has none of them).
RATES = (
    ("x-ratelimit-remaining", "x-ratelimit-reset"),
    ("ratelimit-remaining", "ratelimit-reset"),
)


class Hold:
    """The moment until which this process does not ask, on the monotonic clock. Thread-safe."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._lock = Lock()
        self._until_s = 0.0

    def left_s(self) -> float:
        """Return for how many seconds nobody may ask; 0 if now is fine."""
        return max(0.0, self._until_s - time.monotonic())

    def note(self, status: int, headers: Mapping[str, str]) -> None:
        """Note the wait that a reply asks for; a later end replaces an earlier one."""
        wait_s = _wait_s(status, headers, self._clock())
        if wait_s > 0:
            with self._lock:
                until_s = time.monotonic() + min(wait_s, HOLD_S_MAX)
                self._until_s = max(self._until_s, until_s)


def _wait_s(status: int, headers: Mapping[str, str], now: datetime) -> float:
    """Return for how many seconds a reply asks us to wait; 0 for none."""
    told = headers.get("date")
    sent = moment_of_header(told) if told else None
    if status in {429, 503} and (after := headers.get("retry-after")):
        return _seconds(after, sent or now)
    for remaining, reset in RATES:
        if headers.get(remaining, "").strip() == "0" and reset in headers:
            return _seconds(headers[reset], sent or now)
    return 0.0


def _seconds(text: str, now: datetime) -> float:
    """Read seconds, a moment since 1970, an HTTP date or ISO 8601; 0 for what is none of them."""
    try:
        number = float(text)
    except ValueError:
        at = moment_of_header(text)
        return 0.0 if at is None else (at - now).total_seconds()
    if number >= EPOCH_MS_MIN:
        number /= 1_000
    return number - now.timestamp() if number >= EPOCH_S_MIN else number


def moment_of_header(text: str) -> datetime | None:
    """Read an HTTP date or ISO 8601; None for what is none, or names no zone."""
    for read in (parsedate_to_datetime, datetime.fromisoformat):
        with suppress(ValueError, OverflowError):
            at = read(text)
            return at if at.tzinfo is not None else None
    return None
