"""A log whose database fails on demand: before a commit, after it, or when it is read."""

from collections import deque
from collections.abc import Callable, Collection, Sequence
from typing import Any, Literal
from uuid import UUID

from eventsourcing.persistence import StoredEvent

from app.adapters.sqlite.log import SQLiteLogRecorder

Moment = Literal["before insert", "after insert", "on select", "on head"]


class FaultyRecorder(SQLiteLogRecorder):
    """The real recorder; each scripted fault happens once, at the next chance of its moment."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._script: deque[tuple[Moment, type[Exception] | None]] = deque()
        self.meanwhile: Callable[[], object] = lambda: None  # What others do before each insert.

    def fail(self, moment: Moment, error: type[Exception] | None) -> None:
        """Add a fault to the end of the script; None lets one such moment pass."""
        self._script.append((moment, error))

    @property
    def faults_left(self) -> int:
        """How many scripted faults have not happened."""
        return len(self._script)

    def insert_events(self, stored_events: Sequence[StoredEvent], **options: Any) -> Sequence[int]:
        self.meanwhile()
        self._reach("before insert")
        positions = super().insert_events(stored_events, **options)
        self._reach("after insert")
        return positions

    def select_events(self, originator_id: UUID | str, **options: Any) -> Sequence[StoredEvent]:
        self._reach("on select")
        return super().select_events(originator_id, **options)

    def select_newest(self, streams: Collection[UUID]) -> Sequence[StoredEvent]:
        self._reach("on select")
        return super().select_newest(streams)

    def max_notification_id(self) -> int:
        self._reach("on head")
        return super().max_notification_id()

    def _reach(self, moment: Moment) -> None:
        if self._script and self._script[0][0] == moment:
            _, error = self._script.popleft()
            if error is not None:
                raise error
