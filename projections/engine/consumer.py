"""A consumer of the log. All that following takes is here, once: a consumer says what it does.

Of its position, fence, batches and poison it need not know. There are three modes, by what it
defines: `follow` stores in the transaction that moves the position; with a `read` of its own it is
given stored bytes instead of events; `prepare` publishes before the position moves.

A position moves only from where it was read. So of two copies that are active, one moves it and
the other rolls back.
"""

import logging
import time
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from threading import Event, RLock
from typing import Any, ClassVar

from msgspec.structs import replace

from domain.aggregates import topics_but
from domain.log.log import EventRef, Poisoned, Stored, Stretch
from projections.engine.database import is_outage
from projections.engine.positions import Fenced, Position, Source, belongs, by_position
from projections.engine.read_model import BATCH_EVENTS_MAX, Batch, Uses
from projections.engine.rebuild import Progress, ignore_progress

PACE_S = 0.05  # Between two steps under load: a large batch costs little more than one event.
# Most events ask nothing of a consumer that is no read model. If its position moved with each, each
# would cost a write; if it never did, all of them would be read again after a crash.
MOVE_S = 0.25
REFRESH_S = 1.0  # For so long positions are taken from memory; others may move them.
# Well within the second for which authorization trusts a row.
HEARTBEAT = timedelta(milliseconds=250)
CATCH_UP_PAUSES_S = (0.1, 0.3, 1.0)  # For a start or a command, which cannot do without.
RETRY_MAX_S = 30.0  # What stopped is tried again, at growing intervals up to this one.

logger = logging.getLogger(__name__)


class Stopped(Exception):
    """Raised when a consumer cannot go on; its text says why."""


class Consumer(ABC):
    """Follows the log batch by batch; what fails in it stops at that event, and is tried again.

    An outage (`is_transient`) stops nothing: the step raises, and is taken again.
    """

    name: ClassVar[str]
    version: ClassVar[int] = 1
    uses: ClassVar[Uses] = ()  # The kinds of events that it is given.
    batch_max: ClassVar[int] = BATCH_EVENTS_MAX
    pace_s: ClassVar[float] = PACE_S
    beats: ClassVar[bool] = False  # Whether its rows tell when they were last up to date.

    def __init__(self, source: Source) -> None:
        self._source = source
        self._log, self._database, self._positions, self._clock = source
        # What has a position: the consumer itself, or each read model of the projector.
        self.members: Mapping[str, Any] = {self.name: self}
        self.unused = topics_but(self.uses)
        # A start and a thread may step at once; the simulation steps again within a step.
        self._lock = RLock()
        self._active: Sequence[Position] = ()  # As written last; empty: read them first.
        self._skipped: EventRef | None = None  # Behind the position: what need not be read again.
        self._checked = set[str]()  # Whose positions are those of this log.
        self._refreshed_at = self._moved_at = 0.0
        self._beat_at: datetime | None = None
        self._pauses: dict[str, tuple[float, float]] = {}  # Their length, and their end.

    # What a consumer says.

    def read(self, after: int) -> Stretch:
        """Read the next batch."""
        return self._log.follow(after, self.batch_max, self.unused)

    def prepare(self, rows: Sequence[Any]) -> bool:  # noqa: ARG002  # Of the rows.
        """Do what comes before the transaction; return whether there must be one now."""
        return True

    @abstractmethod
    def follow(self, connection: Any, batch: Batch) -> None:
        """Store what a batch holds, in the transaction that moves the position."""

    def finish(self) -> None:  # noqa: B027  # Most do nothing.
        """Do what comes after the transaction."""

    def is_transient(self, error: Exception) -> bool:
        """Tell whether an error is no fault of an event, so that the same step is taken again."""
        return is_outage(error)

    def start(self, lost: Position | None) -> EventRef | None:  # noqa: ARG002  # Of its own kind.
        """Return where to begin, with no position or with one that is `lost`; None: at the start.

        It is lost if the log does not have its event any more, or if it is of another version.
        Raises Stopped.
        """
        return None

    # What the engine does.

    def ref_at(self, position: int) -> EventRef | None:
        """Return the place of the event at a position; None if the log has none there."""
        rows = self._log.stored(position - 1, 1) if position else []
        return rows[0].ref if rows and rows[0].position == position else None

    def step(self) -> int:
        """Take the next batch; return how many events it holds, or 1 when it must be tried again.

        Raises when the log or the database is unreachable.
        """
        with self._lock:
            known, self._active = self._active, ()
            try:
                return self._step(known) if known else self._step(self._refresh(), is_fresh=True)
            except Fenced:
                logger.debug("another process moves %s, as at a take-over", self.name)
                return 1

    def catch_up(self, until: int | None = None, progress: Progress = ignore_progress) -> None:
        """Follow up to a position (by default the present head), even if others do so too.

        Trouble that passes, such as a deadlock, is waited out; raises when it lasts.
        """
        goal = self._log.head() if until is None else until
        pauses = iter(CATCH_UP_PAUSES_S)
        with self._lock:
            self._active = ()  # Others may have moved or restarted it.
        while True:
            try:
                while (reached := self._reached(goal)) < goal:
                    progress(reached, goal)
                    if not self.step():
                        return
                    pauses = iter(CATCH_UP_PAUSES_S)
            except Exception as error:
                pause_s = next(pauses, None) if is_outage(error) else None
                if pause_s is None:
                    raise
                Event().wait(pause_s)
            else:
                progress(goal, goal)
                return

    def _reached(self, goal: int) -> int:
        """Return the lowest position of those that have not stopped, or `goal`."""
        if self._active:  # As the last step has left them.
            return min(at.position for at in self._active)
        known = self._positions.all(self._database)
        found = (known.get(name) for name in self.members)
        reached = (0 if p is None else p.position for p in found if p is None or not p.failure)
        return min(reached, default=goal)

    def _step(self, active: Sequence[Position], *, is_fresh: bool = False) -> int:
        if not active:
            return 0
        now, after = self._clock(), min(at.position for at in active)
        if self._skipped is not None:
            after = max(after, self._skipped.position)
        try:
            stretch = self.read(after)
        except Poisoned as error:
            self._stop([p for p in self._move(active) if p.position == after], str(error))
            return 1
        if stretch.last is None and self.beats and not is_fresh:
            return self._step(self._refresh(), is_fresh=True)  # One may have been rebuilt.
        if stretch.last is None:
            active = self._move(active)
            self._beat(active, now)
            self._remember([] if self.beats else active)
        else:
            is_end = self.beats and stretch.is_whole and stretch.count < self.batch_max
            seen_at = now if is_end else None
            self._remember(self._write(active, stretch.events, stretch.last, seen_at))
        return stretch.count

    def _refresh(self) -> Sequence[Position]:
        """Read the positions that may be followed now; begin where there is none of this log."""
        self._skipped = None
        known = self._positions.all(self._database)
        now = time.monotonic()
        here = [name for name in self.members if self._pauses.get(name, (0, now))[1] <= now]
        lost = [name for name in here if self._is_lost(name, known.get(name))]
        if lost:
            try:
                self._initialize(lost, known)
            except Stopped as error:
                self._stop([known[name] for name in lost], str(error))
            return self._refresh()
        self._refreshed_at = now
        found = (known.get(name) for name in here)
        return [p for p in found if p is not None and p.version == self.members[p.name].version]

    def _is_lost(self, name: str, position: Position | None) -> bool:
        if position is None or position.version != self.members[name].version:
            return True
        if name not in self._checked and belongs(self._log, position.ref):
            self._checked.add(name)
        return name not in self._checked

    def _initialize(self, lost: Sequence[str], known: Mapping[str, Position]) -> None:
        for name in lost:
            last = self.start(known.get(name))
            self._database.write(self._positions.start, name, self.members[name].version, last)
            self._checked.discard(name)

    def _remember(self, active: Sequence[Position]) -> None:
        """Take these positions from memory next time, unless others may have moved them since."""
        if time.monotonic() < self._refreshed_at + REFRESH_S:
            self._active = active

    def _write(
        self,
        active: Sequence[Position],
        rows: Sequence[Any],
        last: EventRef,
        caught_up_at: datetime | None = None,
    ) -> Sequence[Position]:
        """Take a batch; if that fails, each member alone, then event by event up to the wrong one.

        Returns the positions as they are afterwards, unless something has failed.
        """
        try:
            return self._process(active, rows, last, caught_up_at)
        except Exception as error:
            if isinstance(error, Fenced) or self.is_transient(error) or not rows:
                raise
            if len(active) == len(rows) == 1:
                self._stop(self._move(active), _failure(error, rows[0]), error)
        if len(active) > 1:
            for each in active:
                with suppress(Fenced):
                    self._write([each], rows, last)
        elif len(rows) > 1:
            for row in rows:
                if not (active := self._write(active, [row], row.ref)):
                    return ()
            self._process(active, (), last)
        return ()

    def _process(
        self,
        active: Sequence[Position],
        rows: Sequence[Any],
        last: EventRef,
        caught_up_at: datetime | None = None,
    ) -> Sequence[Position]:
        """Take a batch and move the positions; return them as they are afterwards."""
        behind = [each for each in active if each.position < last.position]
        if behind and not self.prepare(rows) and not self._is_due():
            self._skipped = last
            return active
        if behind:
            with self._database.writing() as connection:
                # The position first, so that who lost the race writes no rows.
                self._positions.advance(connection, behind, last, caught_up_at)
                for old, together in by_position(behind).items():
                    new = [row for row in rows if row.position > old]
                    batch = Batch(new, old, last.position)
                    for each in together:
                        self.members[each.name].follow(connection, batch)
            self._skipped, self._moved_at = None, time.monotonic()
            self.finish()
        for each in active:
            self._pauses.pop(each.name, None)
        return [replace(each, position=max(each.position, last.position)) for each in active]

    def _is_due(self) -> bool:
        """Tell whether a position that need not move moves all the same."""
        return time.monotonic() > min(self._moved_at + MOVE_S, self._refreshed_at + REFRESH_S)

    def _move(self, active: Sequence[Position]) -> Sequence[Position]:
        """Move to what was passed, if anything was; return the positions as they are then."""
        skipped = self._skipped
        behind = [] if skipped is None else [p for p in active if p.position < skipped.position]
        if skipped is None or not behind:
            return active
        self._database.write(self._positions.advance, behind, skipped)
        self._skipped, self._moved_at = None, time.monotonic()
        return [replace(each, position=skipped.position) for each in active]

    def _beat(self, active: Sequence[Position], now: datetime) -> None:
        last = self._beat_at
        if not self.beats or (last is not None and last <= now < last + HEARTBEAT):
            return
        self._database.write(self._positions.caught_up, active, now)
        self._beat_at = now

    def _stop(
        self, active: Sequence[Position], failure: str, error: Exception | None = None
    ) -> None:
        """Say why these members have stopped, and leave them alone for a while."""
        logger.error("%s stopped: %s", ", ".join(p.name for p in active), failure, exc_info=error)
        self._database.write(self._positions.fail, active, failure, self._clock())
        for name in (each.name for each in active):
            length_s = min(2 * self._pauses.get(name, (0.5, 0.0))[0], RETRY_MAX_S)
            self._pauses[name] = length_s, time.monotonic() + length_s


def _failure(error: Exception, row: Any) -> str:
    topic = row.topic if isinstance(row, Stored) else type(row.event).TOPIC
    return f"{type(error).__name__} on {topic} at position {row.position}"
