"""The slices that workers have in hand; losing the table costs repeated lookups, but no charge."""

from collections.abc import Collection, Sequence
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from sqlalchemy import (
    BigInteger,
    Column,
    Integer,
    MetaData,
    Table,
    Uuid,
    bindparam,
    or_,
    select,
    text,
)

from projections.engine.database import Database, from_micros, to_micros
from projections.engine.hot_reads import HotStatement, as_id
from projections.engine.inserting import insert_into
from projections.models.open_slices import Slice

# Runs each second and mostly deletes nothing, so it is one statement without a transaction.
_FORGET = HotStatement(text("DELETE FROM slices_in_hand WHERE until <= :now RETURNING 1"))


class Held(NamedTuple):
    """A slice in the hand of a process until a renewable moment; without `holder` it rests."""

    slice: Slice
    organization_id: UUID
    holder: UUID | None
    until: datetime


class SlicesInHand:
    """One row per slice that a worker has in hand, or that rests until a moment."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self.metadata = MetaData()
        self._rows = Table(
            "slices_in_hand",
            self.metadata,
            Column("job_id", Uuid, primary_key=True),
            Column("slice_index", Integer, primary_key=True, autoincrement=False),
            Column("organization_id", Uuid, nullable=False),
            Column("holder", Uuid),
            Column("until", BigInteger, nullable=False),
        )
        columns = self._rows.c
        self._this = (
            columns.job_id == bindparam("job"),
            columns.slice_index == bindparam("slice"),
        )
        self._mine = (*self._this, columns.holder == bindparam("me"))
        facts = (columns.job_id, columns.slice_index, columns.organization_id, columns.holder)
        self._all = HotStatement(
            select(*facts, columns.until).where(
                columns.until > bindparam("now"), columns.until <= bindparam("latest")
            )
        )

    def all(self, now: datetime, latest: datetime) -> Sequence[Held]:
        """Return the rows that end after now and not later than `latest`."""
        found = self._database.rows(self._all, now=to_micros(now), latest=to_micros(latest))
        return [
            Held(
                Slice(as_id(job_id), index),
                as_id(organization_id),
                None if holder is None else as_id(holder),
                from_micros(until),
            )
            for job_id, index, organization_id, holder, until in found
        ]

    def take(self, held: Held, now: datetime, latest: datetime) -> bool:
        """Take a slice that is free: without a row, lapsed, or ending later than `latest`."""
        row = {
            "job_id": held.slice.job_id,
            "slice_index": held.slice.slice_index,
            "organization_id": held.organization_id,
            "holder": held.holder,
            "until": to_micros(held.until),
        }
        columns, insert = self._rows.c, insert_into(self._rows, self._database.engine.dialect)
        statement = (
            insert.values(row)
            .on_conflict_do_update(
                index_elements=["job_id", "slice_index"],
                set_={name: row[name] for name in ("organization_id", "holder", "until")},
                where=or_(columns.until <= to_micros(now), columns.until > to_micros(latest)),
            )
            .returning(columns.slice_index)
        )
        with self._database.writing() as connection:
            return connection.execute(statement).first() is not None

    def rest(self, this: Slice, holder: UUID, until: datetime) -> None:
        """Release a slice of the holder; no worker may take it before `until`."""
        columns = self._rows.c
        statement = self._rows.update().where(*self._mine)
        values = {columns.holder: None, columns.until: to_micros(until)}
        with self._database.writing() as connection:
            connection.execute(statement.values(values), _named(this, holder))

    def renew(self, slices: Collection[Slice], holder: UUID, until: datetime) -> None:
        """Keep slices of the holder until a later moment."""
        if not slices:
            return
        statement = self._rows.update().where(*self._mine).values(until=to_micros(until))
        with self._database.writing() as connection:
            connection.execute(statement, [_named(each, holder) for each in slices])

    def forget_lapsed(self, now: datetime) -> None:
        self._database.rows(_FORGET, now=to_micros(now))

    def end_rests(self) -> None:
        """Let resting slices be taken at once."""
        with self._database.writing() as connection:
            connection.execute(self._rows.delete().where(self._rows.c.holder.is_(None)))

    def clear(self) -> None:
        """Delete all rows. Call this only while no other process runs that may hold a slice."""
        with self._database.writing() as connection:
            connection.execute(self._rows.delete())


def _named(this: Slice, holder: UUID) -> dict[str, object]:
    return {"job": this.job_id, "slice": this.slice_index, "me": holder}
