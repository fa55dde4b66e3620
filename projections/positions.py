"""How far each follower has come; a position moves in the transaction of what it stands for."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
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
    bindparam,
    func,
    select,
)

from domain.application import Recorded
from projections.database import Database, from_micros, to_micros
from projections.inserting import upsert
from projections.quick import Quick


@dataclass(frozen=True, slots=True)
class Position:
    """A place in the log, with the event that stood there: a restored log shows another one.

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
    """Raised when another process has moved a position: roll back and look again."""


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
        # Built once: they run for every batch.
        self._all = Quick(select(self.rows).order_by(columns.name))
        self._hold_all = (
            select(columns.name, columns.version, columns.position)
            .where(columns.name.in_(bindparam("who", expanding=True)))
            .order_by(columns.name)
            .with_for_update()
        )
        self._advance = (
            self.rows.update()
            .where(
                columns.name.in_(bindparam("who", expanding=True)),
                columns.position == bindparam("old"),
            )
            .values(
                position=bindparam("new_position"),
                stream_id=bindparam("new_stream_id"),
                stream_version=bindparam("new_stream_version"),
                caught_up_at=func.coalesce(bindparam("now"), columns.caught_up_at),
                failure=None,
                failed_at=None,
            )
        )

    def all(self, database: Database) -> dict[str, Position]:
        """Read every position, in the order of names."""
        return {row[0]: _read(row) for row in database.rows(self._all)}

    def get(self, connection: Connection, name: str) -> Position | None:
        """Read one position; None for a follower that has never run."""
        row = connection.execute(select(self.rows).where(self.rows.c.name == name)).one_or_none()
        return _read(row) if row else None

    def hold(self, connection: Connection, name: str) -> Position | None:
        """Read one position that nobody moves until the end of the transaction."""
        statement = select(self.rows).where(self.rows.c.name == name).with_for_update()
        row = connection.execute(statement).one_or_none()
        return _read(row) if row else None

    def hold_all(self, connection: Connection, places: Sequence[Position]) -> None:
        """Let nobody move these until the end of the transaction.

        Raises Fenced when one has moved, or was rebuilt for another version, since it was read.
        They are taken in one order, whoever takes them: an update of several takes them in that of
        their rows, and two of those can deadlock.
        """
        rows = connection.execute(self._hold_all, {"who": [place.name for place in places]})
        now = {row.name: (row.version, row.position) for row in rows}
        for place in places:
            if now.get(place.name) != (place.version, place.position):
                raise Fenced(place.name)

    def begin(self, connection: Connection, name: str, version: int, last: Recorded | None) -> None:
        """Start, or start again, behind an event (None: before the first one).

        The row stays the same one: whoever waits for it sees what has become of it.
        """
        fresh = {"caught_up_at": None, "failure": None, "failed_at": None}
        row = {"name": name, "version": version, **_place(last), **fresh}
        upsert(connection, self.rows, [row])

    def advance(
        self,
        connection: Connection,
        names: Sequence[str],
        old: int,
        last: Recorded,
        caught_up_at: datetime | None = None,
    ) -> None:
        """Move followers that stand at `old` behind an event.

        Raises Fenced when somebody else has moved one of them already.
        """
        move = {"who": [*names], "old": old, "now": None, **_place(last, prefix="new_")}
        if caught_up_at is not None:
            move["now"] = to_micros(caught_up_at)
        if connection.execute(self._advance, move).rowcount != len(names):
            raise Fenced(names[0])

    def caught_up(
        self, connection: Connection, names: Sequence[str], position: int, at: datetime
    ) -> None:
        """Note for followers that at this moment nothing was left behind their position."""
        columns = self.rows.c
        here = (columns.name.in_(names), columns.position == position)
        connection.execute(self.rows.update().where(*here).values(caught_up_at=to_micros(at)))

    def fail(self, connection: Connection, place: Position, failure: str, at: datetime) -> None:
        """Note why a follower stopped at its place; one that has moved on since did not."""
        columns = self.rows.c
        here = (columns.name == place.name, columns.position == place.position)
        statement = self.rows.update().where(*here)
        connection.execute(statement.values(failure=failure, failed_at=to_micros(at)))


def _place(last: Recorded | None, prefix: str = "") -> dict[str, object]:
    event = None if last is None else last.event
    return {
        f"{prefix}position": 0 if last is None else last.position,
        f"{prefix}stream_id": None if event is None else event.originator_id,
        f"{prefix}stream_version": 0 if event is None else event.originator_version,
    }


def _read(row: Sequence[Any]) -> Position:
    name, version, position, stream_id, stream_version, caught_up_at, failure, failed_at = row
    return Position(
        name=name,
        version=version,
        position=position,
        stream_id=UUID(stream_id) if isinstance(stream_id, str) else stream_id,
        stream_version=stream_version,
        caught_up_at=None if caught_up_at is None else from_micros(caught_up_at),
        failure=failure,
        failed_at=None if failed_at is None else from_micros(failed_at),
    )
