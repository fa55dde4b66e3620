"""When a provider may be called again, by the rate-limit headers of its replies."""

import time
from collections.abc import Mapping
from contextlib import suppress
from datetime import datetime
from email.utils import parsedate_to_datetime
from threading import Lock

from domain.cause import Clock

PAUSE_S_MAX = 300.0  # The longest pause, because a header may be wrong.
# How many calls are left, and in how many seconds there are more: RFC 9110 has no such headers.
REMAINING, RESET = "x-ratelimit-remaining", "x-ratelimit-reset"


class Pause:
    """The pause that a provider has asked for, by the monotonic clock. Thread-safe."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._lock = Lock()
        self._until_s = 0.0

    def left_s(self) -> float:
        """Return for how many seconds this process must not call; 0 if it may call now."""
        return max(0.0, self._until_s - time.monotonic())

    def extend(self, status: int, headers: Mapping[str, str]) -> None:
        """Note the pause that a reply asks for; of two pauses the one that ends later counts."""
        wait_s = _wait_s(status, headers, self._clock())
        if wait_s > 0:
            with self._lock:
                until_s = time.monotonic() + min(wait_s, PAUSE_S_MAX)
                self._until_s = max(self._until_s, until_s)


def _wait_s(status: int, headers: Mapping[str, str], now: datetime) -> float:
    """Return for how many seconds a reply asks us to wait; 0 for none."""
    text = headers.get("retry-after", "") if status in {429, 503} else ""
    if not text and headers.get(REMAINING, "").strip() == "0":
        text = headers.get(RESET, "")
    try:
        return float(text)
    except ValueError:
        at, sent = moment_of_header(text), moment_of_header(headers.get("date", ""))
        return 0.0 if at is None else (at - (sent or now)).total_seconds()


def moment_of_header(text: str) -> datetime | None:
    """Read an HTTP date; None for any other text, and for a time without a zone."""
    with suppress(ValueError, OverflowError):
        at = parsedate_to_datetime(text)
        return at if at.tzinfo is not None else None
    return None
