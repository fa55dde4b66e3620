"""The position of each follower, how far it is behind, and which read models must be rebuilt.

A position moves in the same transaction as its effects.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

from sqlalchemy import (
    BigInteger,
    Column,
    Connection,
    Integer,
    MetaData,
    String,
    Table,
    Uuid,
    select,
)

from domain.log.log import Log, Place
from projections.engine.database import Database, from_micros, to_micros
from projections.engine.hot_reads import HotStatement
from projections.engine.inserting import driver_of, upsert
from projections.engine.read_model import ReadModel

# One statement for all positions. It locks the rows in the order of their names: a plain update
# locks them in the order in which they are stored, and two such updates can deadlock.
_ADVANCE_ALL = """
WITH held AS MATERIALIZED (
    SELECT p.name FROM follower_positions AS p
    JOIN unnest(%s::text[], %s::integer[], %s::bigint[]) AS known (name, version, position)
    ON p.name = known.name AND p.version = known.version AND p.position = known.position
    ORDER BY p.name FOR UPDATE OF p
)
UPDATE follower_positions SET position = %s, stream_id = %s, stream_version = %s,
caught_up_at = coalesce(%s, caught_up_at), failure = NULL, failed_at = NULL
WHERE name IN (SELECT name FROM held)
"""
_ADVANCE_ONE = """
UPDATE follower_positions SET position = ?, stream_id = ?, stream_version = ?,
caught_up_at = coalesce(?, caught_up_at), failure = NULL, failed_at = NULL
WHERE name = ? AND version = ? AND position = ?
"""


_CAUGHT_UP_ALL = """
WITH held AS MATERIALIZED (
    SELECT name FROM follower_positions WHERE name = ANY(%s::text[]) AND position = %s
    ORDER BY name FOR UPDATE
)
UPDATE follower_positions SET caught_up_at = %s WHERE name IN (SELECT name FROM held)
"""
_CAUGHT_UP_ONE = "UPDATE follower_positions SET caught_up_at = ? WHERE name = ? AND position = ?"


class Position(NamedTuple):
    """A position in the log and the event that stood there, by which a restored log is noticed.

    `caught_up_at` is when the follower last saw that nothing was left to read.
    """

    name: str
    version: int
    position: int
    stream_id: UUID | None
    stream_version: int
    caught_up_at: datetime | None
    failure: str | None
    failed_at: datetime | None


class Fenced(Exception):
    """Raised when another process has moved a position: roll back and read it again."""


class Positions:
    """One row per follower, beside the read models."""

    def __init__(self) -> None:
        self.metadata = MetaData()
        self.rows = Table(
            "follower_positions",
            self.metadata,
            Column("name", String, primary_key=True),
            Column("version", Integer, nullable=False),
            Column("position", BigInteger, nullable=False),
            Column("stream_id", Uuid),
            Column("stream_version", Integer, nullable=False),
            Column("caught_up_at", BigInteger),
            Column("failure", String),
            Column("failed_at", BigInteger),
        )
        columns = self.rows.c
        self._all = HotStatement(select(self.rows).order_by(columns.name))

    def all(self, database: Database) -> dict[str, Position]:
        """Read every position, in the order of names."""
        return {row[0]: _read(row) for row in database.rows(self._all)}

    def get(self, connection: Connection, name: str) -> Position | None:
        """Read one position; None for a follower that has never run."""
        row = connection.execute(select(self.rows).where(self.rows.c.name == name)).one_or_none()
        return _read(row) if row else None

    def hold(self, connection: Connection, name: str) -> Position | None:
        """Read one position and lock it until the end of the transaction."""
        statement = select(self.rows).where(self.rows.c.name == name).with_for_update()
        row = connection.execute(statement).one_or_none()
        return _read(row) if row else None

    def begin(self, connection: Connection, name: str, version: int, last: Place | None) -> None:
        """Start or restart a follower behind an event; None means before the first event.

        The row is updated, not replaced, so a process that waits for its lock sees the new values.
        """
        fresh = {"caught_up_at": None, "failure": None, "failed_at": None}
        position, stream_id, stream_version = last or (0, None, 0)
        place = {"position": position, "stream_id": stream_id, "stream_version": stream_version}
        row = {"name": name, "version": version, **place, **fresh}
        upsert(connection, self.rows, [row])

    def advance(
        self,
        connection: Connection,
        places: Sequence[Position],
        last: Place,
        caught_up_at: datetime | None = None,
    ) -> None:
        """Move followers from the positions that were read to the position of `last`.

        Raises Fenced when one has since been moved, or was rebuilt for another version.
        """
        now = None if caught_up_at is None else to_micros(caught_up_at)
        known = [(place.name, place.version, place.position) for place in places]
        with driver_of(connection) as driver:
            if connection.dialect.name == "sqlite":
                new = (last.position, last.stream_id.hex, last.stream_version, now)
                moved = driver.executemany(_ADVANCE_ONE, [(*new, *each) for each in known])
            else:
                columns = map(list, zip(*known, strict=True))
                moved = driver.execute(_ADVANCE_ALL, (*columns, *last, now), prepare=True)
        if moved.rowcount != len(places):
            raise Fenced(places[0].name)

    def caught_up(
        self, connection: Connection, names: Sequence[str], position: int, at: datetime
    ) -> None:
        """Note that at this moment these followers had nothing left to read after `position`."""
        moment = to_micros(at)
        with driver_of(connection) as driver:
            if connection.dialect.name == "sqlite":
                driver.executemany(_CAUGHT_UP_ONE, [(moment, name, position) for name in names])
            else:
                driver.execute(_CAUGHT_UP_ALL, ([*names], position, moment), prepare=True)

    def fail(self, connection: Connection, place: Position, failure: str, at: datetime) -> None:
        """Note why a follower stopped at this position; ignored if it has moved on since."""
        columns = self.rows.c
        here = (columns.name == place.name, columns.position == place.position)
        statement = self.rows.update().where(*here)
        connection.execute(statement.values(failure=failure, failed_at=to_micros(at)))


def _read(row: Sequence[Any]) -> Position:
    name, version, position, stream_id, stream_version, caught_up_at, failure, failed_at = row
    return Position(
        name=name,
        version=version,
        position=position,
        stream_id=UUID(stream_id) if isinstance(stream_id, str) else stream_id,
        stream_version=stream_version,
        caught_up_at=from_micros(caught_up_at),
        failure=failure,
        failed_at=from_micros(failed_at),
    )


@dataclass(frozen=True, slots=True)
class Lag:
    """How far one follower is behind; `events` counts positions, of which some may be unused."""

    name: str
    position: int
    events: int
    caught_up_at: datetime | None
    failure: str | None


def lags(log: Log, database: Database, positions: Positions) -> list[Lag]:
    """Return how far each follower is behind."""
    known = positions.all(database)
    head = log.head()
    return [
        Lag(
            place.name,
            place.position,
            max(0, head - place.position),
            place.caught_up_at,
            place.failure,
        )
        for place in known.values()
    ]


def models_to_rebuild(
    log: Log, database: Database, positions: Positions, models: Sequence[ReadModel]
) -> list[ReadModel]:
    """Return the models to rebuild: never built, of another version, or built from another log."""
    known = positions.all(database)
    return [model for model in models if _must_be_rebuilt(log, known.get(model.name), model)]


def _must_be_rebuilt(log: Log, place: Position | None, model: ReadModel) -> bool:
    return place is None or place.version != model.version or not belongs(log, place)


def belongs(log: Log, place: Position) -> bool:
    """Tell whether the log still holds, at this position, the event that the follower saw there."""
    if place.position == 0:
        return True
    found = log.recorder.select_notifications(place.position, 1, stop=place.position)
    return bool(found) and (found[0].originator_id, found[0].originator_version) == (
        place.stream_id,
        place.stream_version,
    )
