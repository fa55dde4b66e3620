"""Answers on their way into the cache: written together by a thread, read at once by everybody."""

import logging
from collections.abc import Callable, Sequence
from datetime import datetime
from threading import Condition, Thread
from uuid import UUID

from domain.lookups.ports import CachedFacts

PACE_S = 0.05  # Between two writes: no request waits for one, and many answers share it.
ANSWERS_MAX = 20_000  # Beyond it answers are not kept: it is a cache.
CLOSE_S = 10.0

logger = logging.getLogger(__name__)

Kept = dict[UUID, dict[str, CachedFacts]]  # By organization and number.


class Unwritten:
    """Keeps what is not written yet; a process that is killed loses it, and that costs time."""

    def __init__(self, write: Callable[[Kept], None]) -> None:
        self._write = write
        self._condition = Condition()
        self._waiting: Kept = {}
        self._under_way: Kept = {}
        self._thread: Thread | None = None
        self._closed = False

    def add(self, organization_id: UUID, answers: Sequence[CachedFacts]) -> None:
        """Take answers; a newer one of the same number replaces an older one."""
        with self._condition:
            if self._closed or _count(self._waiting) + len(answers) > ANSWERS_MAX:
                return
            own = self._waiting.setdefault(organization_id, {})
            own.update((answer.facts.phone_number, answer) for answer in answers)
            if self._thread is None:
                self._thread = Thread(target=self._run, name="lookup cache", daemon=True)
                self._thread.start()
            self._condition.notify_all()

    def find(
        self, organization_id: UUID, phone_numbers: Sequence[str], not_before: datetime
    ) -> dict[str, CachedFacts]:
        """Return those of these numbers that wait and are not older than `not_before`."""
        found: dict[str, CachedFacts] = {}
        for kept in (self._waiting, self._under_way):
            own = kept.get(organization_id)
            if own:
                seen = ((number, own.get(number)) for number in phone_numbers)
                fresh = {n: each for n, each in seen if each and each.as_of >= not_before}
                found = fresh | found  # What waits is newer than what is under way.
        return found

    def flush(self) -> None:
        """Wait until everything that waits now is written, or has failed to be."""
        with self._condition:
            self._condition.wait_for(lambda: not self._waiting and not self._under_way, CLOSE_S)

    def close(self) -> None:
        """Write what waits; take nothing more."""
        with self._condition:
            self._closed = True
            self._condition.notify_all()
        if self._thread is not None:
            self._thread.join(CLOSE_S)

    def _run(self) -> None:
        while self._take():
            try:
                self._write(self._under_way)
            except Exception:
                logger.exception("answers were not written into the cache")
            finally:
                with self._condition:
                    self._under_way = {}
                    self._condition.notify_all()
                    self._condition.wait_for(lambda: self._closed, PACE_S)

    def _take(self) -> bool:
        """Wait for answers and take all of them; False at the end."""
        with self._condition:
            self._condition.wait_for(lambda: self._waiting or self._closed)
            self._under_way, self._waiting = self._waiting, {}
            return bool(self._under_way)


def _count(kept: Kept) -> int:
    return sum(map(len, kept.values()))
