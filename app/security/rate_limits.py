"""Limits the requests of an organization in each minute, over all processes.

A process counts some requests ahead in one SQL statement and then admits as many by itself, so that
a high limit costs few statements. While requests cannot be counted, they pass.
"""

from collections.abc import Mapping
from math import ceil
from threading import Lock
from typing import NamedTuple
from uuid import UUID

from domain.blocking import may_block
from domain.cause import Clock
from projections.stores.counters import Counters

WINDOW_S = 60
# A process counts ahead at most a fiftieth of what is left: what it leaves unused is lost.
AHEAD_OF = 50
KNOWN_MAX = 10_000  # Organizations; beyond, all are forgotten.
WAIT_S = 1.0  # The longest wait for another thread that counts; then the request passes.


class Admission(NamedTuple):
    """Whether a request is over the limit, how many are left, and when the next minute begins."""

    per_minute: int
    left: int
    resets_s: int
    is_over: bool

    def headers(self) -> Mapping[str, str]:
        """Return the headers of the reply (draft-ietf-httpapi-ratelimit-headers)."""
        return {
            "RateLimit-Policy": f'"default";q={self.per_minute};w={WINDOW_S}',
            "RateLimit": f'"default";r={self.left};t={self.resets_s}',
        }


class _Minute:
    """A minute as a process knows it: it may admit `own` more; no process has taken `free`."""

    def __init__(self) -> None:
        self.lock = Lock()
        self.number, self.per_minute, self.own, self.free = 0, 0, 0, 0

    def start(self, number: int, per_minute: int) -> None:
        """Begin a minute unless it has begun; begin it again if the limit has changed."""
        if not number <= self.number <= number + 1 or per_minute != self.per_minute:
            self.number, self.per_minute, self.own, self.free = number, per_minute, 0, per_minute


class RateLimits:
    """What this process knows of each organization that has a limit."""

    def __init__(self, counters: Counters, clock: Clock) -> None:
        self._counters = counters
        self._clock = clock
        self._minutes: dict[UUID, _Minute] = {}

    def admit(self, organization_id: UUID, per_minute: int) -> Admission:
        """Count a request. Beyond the limit this costs no SQL statement until the minute ends."""
        if len(self._minutes) >= KNOWN_MAX:
            self._minutes = {}
        minute = self._minutes.setdefault(organization_id, _Minute())
        now_s = self._clock().timestamp()
        if not minute.lock.acquire(blocking=False):
            may_block()
            if not minute.lock.acquire(timeout=WAIT_S):
                return Admission(per_minute, 0, WINDOW_S, is_over=False)
        try:
            minute.start(int(now_s // WINDOW_S), per_minute)
            if not minute.own and minute.free:
                self._count(minute, organization_id)
            is_over = minute.own <= 0
            minute.own -= not is_over
            resets_s = max(ceil((minute.number + 1) * WINDOW_S - now_s), 1)
            return Admission(per_minute, minute.own + minute.free, resets_s, is_over)
        finally:
            minute.lock.release()

    def give_back(self, organization_id: UUID) -> None:
        """Undo an admission, because the same request will ask for another."""
        minute = self._minutes.get(organization_id)
        if minute is not None:
            minute.own += 1

    def _count(self, minute: _Minute, organization_id: UUID) -> None:
        may_block()
        wanted = max(minute.free // AHEAD_OF, 1)
        counted = self._counters.count_requests(organization_id, minute.number, wanted)
        if counted is None:
            minute.own = wanted  # This many requests pass before the next attempt to count.
            return
        minute.number, count = counted
        minute.own = max(min(wanted, minute.per_minute - (count - wanted)), 0)
        minute.free = max(minute.per_minute - count, 0)
