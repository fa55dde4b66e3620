"""Answers on their way into the cache: written together by a thread, read at once by everybody."""

import logging
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from threading import Condition, Thread
from uuid import UUID

from domain.ports import CachedFacts

PACE_S = 0.05  # Between two writes: no request waits for one, and many answers share it.
ANSWERS_MAX = 20_000  # Beyond it answers are not kept: it is a cache.
CLOSE_S = 10.0

logger = logging.getLogger(__name__)

Key = tuple[UUID, str]  # An organization and a number.


class Unwritten:
    """Keeps what is not written yet; a process that is killed loses it, and that costs time."""

    def __init__(self, write: Callable[[Mapping[Key, CachedFacts]], None]) -> None:
        self._write = write
        self._condition = Condition()
        self._waiting: dict[Key, CachedFacts] = {}
        self._under_way: Mapping[Key, CachedFacts] = {}
        self._thread: Thread | None = None
        self._closed = False

    def add(self, organization_id: UUID, answers: Sequence[CachedFacts]) -> None:
        """Take answers; a newer one of the same number replaces an older one."""
        with self._condition:
            if self._closed or len(self._waiting) + len(answers) > ANSWERS_MAX:
                return
            for answer in answers:
                self._waiting[organization_id, answer.facts.phone_number] = answer
            if self._thread is None:
                self._thread = Thread(target=self._run, name="lookup cache", daemon=True)
                self._thread.start()
            self._condition.notify_all()

    def find(
        self, organization_id: UUID, phone_numbers: Sequence[str], not_before: datetime
    ) -> dict[str, CachedFacts]:
        """Return those of these numbers that wait and are not older than `not_before`."""
        waiting, under_way = self._waiting, self._under_way
        if not waiting and not under_way:
            return {}
        found = {}
        for number in phone_numbers:
            key = (organization_id, number)
            answer = waiting.get(key) or under_way.get(key)
            if answer is not None and answer.as_of >= not_before:
                found[number] = answer
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
