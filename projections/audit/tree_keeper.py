"""The tree keeper follows the log and adds the leaf of every event to the kept tree, once.

It reads stored bytes and decodes nothing. Like every follower it moves its position in the
transaction of its rows. If the log no longer has the event at its position, it stops and changes
nothing: it must not trust a log that has just proved to be a different one.
"""

from threading import RLock
from uuid import UUID

from domain.cause import Clock
from domain.finance.month import Month
from domain.log.log import Log, Place, Poisoned, Stored
from projections.audit.kept_tree import KeptTree
from projections.audit.tree import leaf_hash
from projections.engine.database import Database
from projections.engine.positions import Fenced, Position, Positions, belongs
from projections.engine.rebuild import Progress, ignore_progress

NAME = "audit_tree"
VERSION = 1
BATCH_EVENTS_MAX = 2_000
CLOSE = Month.Closed.TOPIC


class Unkept(Exception):
    """Raised when the kept tree cannot go on; its text says why."""


class TreeKeeper:
    """Adds events in batches; of several copies one moves the position, the others roll back."""

    def __init__(
        self, log: Log, database: Database, positions: Positions, tree: KeptTree, clock: Clock
    ) -> None:
        self._log = log
        self._database = database
        self._positions = positions
        self._tree = tree
        self._clock = clock
        self._turn = RLock()
        self._is_ours = False  # Whether the position was compared with the log.
        self.closed_at = 0  # The position of the newest close of a month that this object added.

    def step(self) -> int:
        """Add the next batch; return how many events it holds. Raises Unkept when stopped."""
        with self._turn:
            place = self._place()
            rows = self._read(place)
            if rows:
                self._take(place, rows)
            return len(rows)

    def catch_up(self, until: int | None = None, progress: Progress = ignore_progress) -> None:
        """Add all events up to a position (by default the present head); others may do so too."""
        goal = self._log.head() if until is None else until
        while (reached := self._place().position) < goal:
            self.step()
            progress(reached, goal)

    def restart(self, progress: Progress = ignore_progress) -> int:
        """Forget the kept leaves and add the log as it is now; return the position reached."""
        with self._database.writing() as connection:
            self._positions.begin(connection, NAME, VERSION, None)
            self._tree.clear(connection)
        self._is_ours = False
        self.catch_up(progress=progress)
        return self._place().position

    def _place(self) -> Position:
        with self._database.reading() as connection:
            place = self._positions.get(connection, NAME)
        if place is None:
            self._begin()
            return self._place()
        if not self._is_ours:
            if not belongs(self._log, place):
                raise self._stopped(place, f"the log has no longer the event at {place.position}")
            self._is_ours = True
        return place

    def _begin(self) -> None:
        """Start after the last kept leaf, or before the first event if there is none."""
        with self._database.reading() as connection:
            _, position = self._tree.end(connection)
        found = self._log.stored(position - 1, 1) if position else []
        last = Place(position, UUID(int=0), 0) if position else None  # As of another log.
        if found and found[0].position == position:
            last = found[0].place
        with self._database.writing() as connection:
            self._positions.begin(connection, NAME, VERSION, last)

    def _read(self, place: Position) -> list[Stored]:
        try:
            return self._log.stored(place.position, BATCH_EVENTS_MAX)
        except Poisoned as error:
            raise self._stopped(place, str(error)) from error

    def _take(self, place: Position, rows: list[Stored]) -> None:
        leaves = [(row.position, leaf_hash(*row)) for row in rows]
        try:
            with self._database.writing() as connection:
                self._positions.advance(connection, [place], rows[-1].place)
                self._tree.append(connection, leaves)
        except Fenced:
            return  # Another process has taken them.
        closed = [row.position for row in rows if row.topic == CLOSE]
        self.closed_at = max([self.closed_at, *closed])

    def _stopped(self, place: Position, reason: str) -> Unkept:
        failure = f"{reason}; see: python -m app audit verify"
        if place.failure != failure:
            with self._database.writing() as connection:
                self._positions.fail(connection, place, failure, self._clock())
        return Unkept(f"{NAME}: {failure}")
