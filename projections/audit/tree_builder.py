"""The tree keeper follows the log and adds the leaf of every event to the kept tree, once.

It reads stored bytes and decodes nothing. If the log no longer has the event at its position, it
stops and changes nothing: it must not trust a log that has just proved to be a different one.
"""

from typing import Any, cast
from uuid import UUID

from sqlalchemy import Connection

from domain.finance.statement import Month
from domain.log.log import EventRef, Stored, Stretch
from projections.audit.stored_tree import StoredTree
from projections.audit.tree import leaf_hash
from projections.engine.consumer import Consumer, Stopped
from projections.engine.positions import Position, Source
from projections.engine.read_model import Batch
from projections.engine.rebuild import Progress, ignore_progress

CLOSE = Month.Closed.TOPIC


class TreeBuilder(Consumer):
    """Adds events in batches; of several copies one moves the position, the others roll back."""

    name = "audit_tree"
    batch_max = 2_000

    def __init__(self, source: Source, tree: StoredTree) -> None:
        super().__init__(source)
        self._tree = tree
        self.closed_at = 0  # The position of the newest close of a month that this object added.

    def start(self, lost: Position | None) -> EventRef | None:
        """Start after the last kept leaf, or before the first event if there is none."""
        if lost is not None:
            raise Stopped(
                f"the log has no longer the event at {lost.position}; "
                "see: python -m app audit verify"
            )
        _, position = self._database.read(self._tree.end)
        if not position:
            return None
        return self.ref_at(position) or EventRef(position, UUID(int=0), 0)  # As of another log.

    def read(self, after: int) -> Stretch:
        rows = self._log.stored(after, self.batch_max)
        last = rows[-1].ref if rows else None
        return Stretch(cast("Any", rows), len(rows), last, is_whole=True)

    def follow(self, connection: Connection, batch: Batch) -> None:
        rows = cast("list[Stored]", batch.rows)
        self._tree.append(connection, [(row.position, leaf_hash(*row)) for row in rows])
        closed = [row.position for row in rows if row.topic == CLOSE]
        self.closed_at = max([self.closed_at, *closed])

    def events(self, until: int) -> int:
        """Return how many events the log has up to a position: positions have gaps, leaves none."""
        with self._database.reading() as connection:
            _, end = self._tree.end(connection)
            leaves = self._tree.size_at(connection, until)
        return leaves + self._log.count(end, until)

    def catch_up(self, until: int | None = None, progress: Progress = ignore_progress) -> None:
        """Add all events up to a position; raises Stopped when it cannot go on."""
        super().catch_up(until, progress)
        position = self._positions.all(self._database).get(self.name)
        if position is not None and position.failure is not None:
            raise Stopped(f"{self.name}: {position.failure}")

    def restart(self, progress: Progress = ignore_progress) -> int:
        """Forget the kept leaves and add the log as it is now; return the position reached."""
        with self._lock, self._database.writing() as connection:
            self._positions.start(connection, self.name, self.version, None)
            self._tree.clear(connection)
            self._pauses.clear()
        self.catch_up(progress=progress)
        return self._positions.all(self._database)[self.name].position
