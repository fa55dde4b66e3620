"""The projector writes batches of the log into the read models and moves their positions."""

import logging
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from threading import Event, RLock

from domain.cause import Clock
from domain.log.log import Log, Place, Poisoned, Recorded
from projections.engine.database import Database, is_outage
from projections.engine.positions import Fenced, Position, Positions, models_to_rebuild
from projections.engine.read_model import Batch, ReadModel, unused_by
from projections.engine.rebuild import rebuild_all

BATCH_EVENTS_MAX = 500  # A batch must fit into a clock tick even when every event writes a row.
# Well within the second for which authorization trusts a row.
HEARTBEAT = timedelta(milliseconds=250)
CATCH_UP_PAUSES_S = (0.1, 0.3, 1.0)  # For a start or a command, which needs the read models now.
LOOK_S = 1.0  # Under steady load the positions are taken from memory for this long.
RETRY_MAX_S = 30.0  # A read model that stopped is tried again, at growing intervals up to this one.

logger = logging.getLogger(__name__)


class Projector:
    """Keeps read models up to date with the log; one that fails stops alone, the others go on."""

    def __init__(
        self,
        log: Log,
        database: Database,
        positions: Positions,
        models: Sequence[ReadModel],
        clock: Clock,
    ) -> None:
        self._log = log
        self._database = database
        self._positions = positions
        self._models = {model.name: model for model in models}
        self._unused = unused_by(models)
        self._clock = clock
        self._turn = RLock()  # Reentrant, because the simulation calls it again within a step.
        self._heartbeat_at: datetime | None = None
        self._is_checked = False  # Whether the positions were compared with the log.
        self._stopped: dict[str, _Pause] = {}
        # The positions as written last; empty: read them first.
        self._active: Sequence[Position] = ()
        self._looked_at = 0.0
        self.on_failure: Callable[[str, str], None] = lambda _name, _failure: None

    def step(self) -> int:
        """Project the next batch; return how many events it holds, or 1 when it cannot be read.

        Raises when the log is unreachable.
        """
        # At a start `catch_up` runs beside the follower; without a lock one would fence the other.
        with self._turn:
            return self._step()

    def _step(self) -> int:
        if not self._is_checked:
            self._rebuild_lost()
        now = self._clock()
        known, self._active = self._active, ()
        active = known or self._look()
        if not active:
            return 0
        start = min(place.position for place in active)
        try:
            stretch = self._log.follow(start, BATCH_EVENTS_MAX, self._unused)
        except Poisoned as error:
            logger.error("every read model stops: %s", error)  # noqa: TRY400  # The message holds the reason.
            self._stop([p for p in active if p.position == start], str(error))
            return 1
        if stretch.last is not None:
            is_end = stretch.is_whole and stretch.count < BATCH_EVENTS_MAX
            self._write(active, stretch.events, stretch.last, now if is_end else None)
        elif known:
            # Read the positions this time: other processes may have moved or dropped them.
            return self._step()
        else:
            self._beat(active, now)
        return stretch.count

    def _look(self) -> Sequence[Position]:
        known = self._positions.all(self._database)
        self._looked_at = time.monotonic()
        return [place for name, place in known.items() if self._may_follow(name, place)]

    def _rebuild_lost(self) -> None:
        """Rebuild the read models that have projected events that a failover has lost.

        Usually there are none: tables in the database of the log have lost the same commits. Tables
        of another version are left alone.
        """
        known = {place.name for place in self._look()}
        models = [self._models[name] for name in known if name in self._models]
        lost = models_to_rebuild(self._log, self._database, self._positions, models)
        if lost:
            logger.warning("read models are rebuilt: %s", [each.name for each in lost])
            rebuild_all(self._log, self._database, self._positions, lost)
        self._is_checked = True

    def catch_up(self, until: int | None = None) -> None:
        """Project up to a position (by default the present head), even if others project too.

        Trouble that passes, such as a deadlock, is waited out; raises when it lasts.
        """
        goal = self._log.head() if until is None else until
        pauses = iter(CATCH_UP_PAUSES_S)
        while True:
            try:
                while self.behind(goal) and self.step():
                    pauses = iter(CATCH_UP_PAUSES_S)
            except Exception as error:
                pause_s = next(pauses, None) if is_outage(error) else None
                if pause_s is None:
                    raise
                Event().wait(pause_s)
            else:
                return

    def behind(self, goal: int) -> bool:
        """Tell whether a read model that has not failed is still before this position."""
        known = self._positions.all(self._database)
        return any(
            place.position < goal and place.failure is None
            for name, place in known.items()
            if name in self._models
        )

    def _write(
        self,
        active: Sequence[Position],
        events: Sequence[Recorded],
        last: Place,
        caught_up_at: datetime | None,
    ) -> None:
        """Write a batch for all models in one transaction; if that fails, for each model alone."""
        try:
            moved = self._project(active, events, last, caught_up_at)
        except Fenced:
            logger.debug("another process projects too, as at a take-over or in a command")
        except Exception as error:
            if is_outage(error):
                raise  # The database is in trouble, not a handler, so the follower backs off.
            for place in active:
                self._write_alone(place, events, last)
        else:
            if time.monotonic() < self._looked_at + LOOK_S:
                self._active = moved

    def _project(
        self,
        places: Sequence[Position],
        events: Sequence[Recorded],
        last: Place,
        caught_up_at: datetime | None = None,
    ) -> Sequence[Position]:
        """Write a batch and move the positions; return them as they are afterwards."""
        behind = [place for place in places if place.position < last.position]
        if behind:
            with self._database.writing() as connection:
                # The position first, so that a projector that lost the race writes no rows.
                self._positions.advance(connection, behind, last, caught_up_at)
                for old, names in _by_position(behind).items():
                    kinds = Batch([recorded for recorded in events if recorded.position > old])
                    for name in names:
                        self._models[name].follow(connection, kinds)
        for place in places:
            self._stopped.pop(place.name, None)
        return [place._replace(position=max(place.position, last.position)) for place in places]

    def _write_alone(self, place: Position, events: Sequence[Recorded], last: Place) -> None:
        try:
            self._project([place], events, last)
        except Fenced:
            return
        except Exception as error:
            if is_outage(error):
                raise
            self._write_singly(place, events, last)

    def _write_singly(self, place: Position, events: Sequence[Recorded], last: Place) -> None:
        """Write event by event up to the one that fails, and stop the model there."""
        for recorded in events:
            try:
                (place,) = self._project([place], [recorded], recorded.place)
            except Fenced:
                return
            except Exception as error:
                if is_outage(error):
                    raise
                logger.exception("read model %s stopped", place.name)
                event = type(recorded.event).TOPIC  # type: ignore[attr-defined]  # every event has one
                failure = f"{type(error).__name__} on {event} at position {recorded.position}"
                self._stop([place], failure)
                return
        with suppress(Fenced):
            self._project([place], (), last)

    def _stop(self, places: Sequence[Position], failure: str) -> None:
        with self._database.writing() as connection:
            for place in places:
                now = self._clock()
                self._positions.fail(connection, place, failure, now)
        for place in places:
            self._stopped.setdefault(place.name, _Pause()).lengthen()
            self.on_failure(place.name, failure)

    def _may_follow(self, name: str, place: Position) -> bool:
        """Tell whether to follow this position; tables of another version are not ours."""
        model, pause = self._models.get(name), self._stopped.get(name)
        if model is None or model.version != place.version:
            return False
        return pause is None or pause.is_over()

    def _beat(self, active: Sequence[Position], now: datetime) -> None:
        last = self._heartbeat_at
        if last is not None and last <= now < last + HEARTBEAT:
            return
        for position, names in _by_position(active).items():
            with self._database.writing() as connection:
                self._positions.caught_up(connection, names, position, now)
        self._heartbeat_at = now


def _by_position(places: Iterable[Position]) -> Mapping[int, Sequence[str]]:
    """Group followers by position; nearly always all stand at the same one."""
    groups = defaultdict[int, list[str]](list)
    for place in places:
        groups[place.position].append(place.name)
    return groups


class _Pause:
    """How long a stopped read model waits until it is tried again."""

    def __init__(self) -> None:
        self._length_s = 0.5
        self._until = 0.0

    def lengthen(self) -> None:
        self._length_s = min(2 * self._length_s, RETRY_MAX_S)
        self._until = time.monotonic() + self._length_s

    def is_over(self) -> bool:
        return time.monotonic() >= self._until
