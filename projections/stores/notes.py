"""Notes of an installation about itself: its first keys, backups, audits, whether it is held.

Losing them costs warnings (new keys would then count as the first ones); client secrets without an
end then live for longer, and a held copy acts.
"""

from datetime import datetime
from itertools import groupby
from typing import Literal, NamedTuple

from sqlalchemy import BigInteger, Column, MetaData, String, Table, bindparam, select

from projections.engine.database import Database, from_micros, to_micros
from projections.engine.hot_reads import HotStatement

Subject = Literal[
    "pepper",
    "signing_keys",
    "webhook_key",
    "backup",
    "audit",
    "hold",
    "alive",
    "counters",
    "settings",
]


class Note(NamedTuple):
    """A value that holds from a moment on."""

    at: datetime
    value: str


class Notes:
    """One row per change of a subject, in the database of the log, so that a backup includes it."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self.metadata = MetaData()
        self._rows = Table(
            "installation_notes",
            self.metadata,
            Column("subject", String, primary_key=True),
            Column("at", BigInteger, primary_key=True),
            Column("value", String, nullable=False),
        )
        columns = self._rows.c
        notes = select(columns.at, columns.value).where(columns.subject == bindparam("about"))
        self._all = HotStatement(notes.order_by(columns.at))  # Each process asks every second.

    def all(self, subject: Subject) -> list[Note]:
        """Return the notes on a subject, oldest first; equal notes of two processes come once."""
        found = self._database.rows(self._all, about=subject)
        alike = groupby(found, key=lambda row: str(row[1]))
        return [Note(from_micros(next(rows)[0]), value) for value, rows in alike]

    def newest(self, subject: Subject) -> Note | None:
        return next(reversed(self.all(subject)), None)

    def value(self, subject: Subject) -> str | None:
        note = self.newest(subject)
        return None if note is None else note.value

    def add(self, subject: Subject, value: str, at: datetime) -> None:
        """Add a value that holds from now on, unless the newest note has the same value.

        The new note counts as the newest even if the clock of the last one's process was ahead.
        """
        columns = self._rows.c
        last = self.newest(subject)
        if last is not None and last.value == value:
            return
        micros = to_micros(at) if last is None else max(to_micros(at), to_micros(last.at) + 1)
        row = {columns.subject: subject, columns.at: micros, columns.value: value}
        self._database.change(self._rows.insert().values(row))

    def replace(self, subject: Subject, value: str, at: datetime) -> None:
        """Keep only this note on a subject."""
        columns = self._rows.c
        row = {columns.subject: subject, columns.at: to_micros(at), columns.value: value}
        with self._database.writing() as connection:
            connection.execute(self._rows.delete().where(columns.subject == subject))
            connection.execute(self._rows.insert().values(row))
