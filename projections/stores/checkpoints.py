"""Checkpoints that were signed here, and which of them the sink has accepted.

They are in the database of the log and as durable as the log, because the statement of a closed
month always shows the same checkpoint. Losing them costs only that: others keep copies, and new
checkpoints are made.
"""

from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Any, NamedTuple

from sqlalchemy import BigInteger, Column, Integer, MetaData, Row, Select, String, Table, select

from projections.audit.checkpoint import SignedCheckpoint
from projections.audit.covering import ChangedCheckpoint, covering, signed_in
from projections.engine.database import Database, from_micros, to_micros


class StoredCheckpoint(NamedTuple):
    """A checkpoint as it is kept; `delivered_at` is None until the sink has accepted it."""

    number: int
    signed: SignedCheckpoint
    delivered_at: datetime | None


class CheckpointStore:
    """One row per checkpoint, in the order in which they were made.

    Reading one raises ChangedCheckpoint if somebody has changed its row.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self.metadata = MetaData()
        self._rows = Table(
            "checkpoints",
            self.metadata,
            Column("number", Integer, primary_key=True),
            Column("position", BigInteger, nullable=False, index=True),
            Column("made_at", BigInteger, nullable=False),
            Column("note", String, nullable=False),
            Column("delivered_at", BigInteger),
        )

    def add(self, signed: SignedCheckpoint) -> StoredCheckpoint:
        with self._database.writing(durable=True) as connection:
            made = connection.execute(self._rows.insert().values(_row(signed))).inserted_primary_key
        assert made is not None
        return StoredCheckpoint(made[0], signed, None)

    def fill(self, notes: Iterable[SignedCheckpoint], delivered_at: datetime) -> None:
        """Add checkpoints of a log that was imported, in the order in which they were made."""
        made = {each.note: each for each in notes}.values()  # The same file may be there twice.
        in_order = sorted(made, key=lambda each: (each.checkpoint.size, each.checkpoint.at))
        if rows := [_row(each, delivered_at) for each in in_order]:
            with self._database.writing(durable=True) as connection:
                connection.execute(self._rows.insert(), rows)

    def newest(self, *, delivered: bool = False) -> StoredCheckpoint | None:
        """Return the newest checkpoint, or the newest that the sink has accepted."""
        columns = self._rows.c
        wanted = select(self._rows).order_by(columns.number.desc())
        return self._first(wanted.where(columns.delivered_at.is_not(None)) if delivered else wanted)

    def covering(self, position: int) -> StoredCheckpoint | None:
        """Return the first checkpoint that covers a position; it never changes."""
        return self._first(covering(self._rows, position))

    def undelivered(self, limit: int) -> list[StoredCheckpoint]:
        """Return checkpoints that the sink has not accepted, newest first; omit changed rows."""
        columns = self._rows.c
        wanted = select(self._rows).where(columns.delivered_at.is_(None))
        wanted = wanted.order_by(columns.number.desc())
        found = map(_read_or_fault, self._database.all(wanted.limit(limit)))
        return [each for each in found if isinstance(each, StoredCheckpoint)]

    def delivered(self, number: int, at: datetime) -> None:
        """Note that the sink has accepted a checkpoint."""
        here = self._rows.update().where(self._rows.c.number == number)
        self._database.change(here.values(delivered_at=to_micros(at)))

    def all(self) -> Iterator[StoredCheckpoint | ChangedCheckpoint]:
        """Yield every checkpoint, or its fault, in the order in which they were made."""
        columns, last = self._rows.c, 0
        while True:
            wanted = select(self._rows).where(columns.number > last).order_by(columns.number)
            found = self._database.all(wanted.limit(500))
            if not found:
                return
            yield from map(_read_or_fault, found)
            last = found[-1].number

    def _first(self, wanted: Select[Any]) -> StoredCheckpoint | None:
        found = self._database.all(wanted.limit(1))
        return _read(found[0]) if found else None


def _row(signed: SignedCheckpoint, delivered_at: datetime | None = None) -> dict[str, Any]:
    made, at = signed.checkpoint, delivered_at and to_micros(delivered_at)
    facts = {"position": made.position, "made_at": to_micros(made.at), "note": signed.note}
    return {**facts, "delivered_at": at}


def _read(row: Row[Any]) -> StoredCheckpoint:
    delivered_at = from_micros(row.delivered_at)
    return StoredCheckpoint(row.number, signed_in(row), delivered_at)


def _read_or_fault(row: Row[Any]) -> StoredCheckpoint | ChangedCheckpoint:
    try:
        return _read(row)
    except ChangedCheckpoint as error:
        return error
