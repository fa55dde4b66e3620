"""When a provider may be called again, by the rate-limit headers of its replies."""

import time
from collections.abc import Mapping
from contextlib import suppress
from datetime import datetime
from email.utils import parsedate_to_datetime
from threading import Lock

from domain.cause import Clock

HOLD_S_MAX = 300.0  # The longest pause, because a header may be wrong.
EPOCH_S_MIN = 1_000_000_000  # A number from here on counts seconds since 1970, not from now.
EPOCH_MS_MIN = EPOCH_S_MIN * 1_000  # A number from here on counts milliseconds since 1970.
# The headers for how many calls are left, and when there are more; RFC 9110 has no such headers.
RATES = (
    ("x-ratelimit-remaining", "x-ratelimit-reset"),
    ("ratelimit-remaining", "ratelimit-reset"),
)


class Hold:
    """The pause that a provider has asked for, by the monotonic clock. Thread-safe."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._lock = Lock()
        self._until_s = 0.0

    def left_s(self) -> float:
        """Return for how many seconds this process must not call; 0 if it may call now."""
        return max(0.0, self._until_s - time.monotonic())

    def note(self, status: int, headers: Mapping[str, str]) -> None:
        """Note the pause that a reply asks for; of two pauses the one that ends later counts."""
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
    """Read seconds, a moment since 1970, an HTTP date or ISO 8601; 0 for any other text."""
    try:
        number = float(text)
    except ValueError:
        at = moment_of_header(text)
        return 0.0 if at is None else (at - now).total_seconds()
    if number >= EPOCH_MS_MIN:
        number /= 1_000
    return number - now.timestamp() if number >= EPOCH_S_MIN else number


def moment_of_header(text: str) -> datetime | None:
    """Read an HTTP date or ISO 8601; None for any other text, and for a time without a zone."""
    for read in (parsedate_to_datetime, datetime.fromisoformat):
        with suppress(ValueError, OverflowError):
            at = read(text)
            return at if at.tzinfo is not None else None
    return None
