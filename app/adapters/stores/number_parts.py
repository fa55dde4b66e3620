"""The phone numbers of links by each of their ends, so that any part of one begins one of them."""

from typing import Any
from uuid import UUID

from sqlalchemy import (
    Column,
    ColumnElement,
    Connection,
    Delete,
    Insert,
    MetaData,
    Select,
    String,
    Table,
    Uuid,
    bindparam,
    exists,
    func,
    select,
)
from sqlalchemy.dialects import postgresql, sqlite

from projections.engine.database import Database
from projections.engine.hot_reads import Quick, as_id, run
from projections.engine.in_parts import change_in_parts

BATCH_LINKS = 1_000  # Each has a dozen parts, which must not all be in memory.

_LAST = chr(0x10FFFF)  # No character comes after it.

# Compared byte by byte, so that all that begin alike stand together in any database.
_PLAIN = String().with_variant(String(collation="C"), "postgresql")


class NumberParts:
    """A row per link and end of its number: `+4612` is there as `+4612`, `4612`, `612`, `12`, `2`.

    Plain rows and no trigrams: what is deleted leaves no bytes behind, and two digits suffice. It
    follows the readings, whose `msisdn` alone says what the number of a link is.
    """

    def __init__(self, readings: Table, dialect_name: str) -> None:
        self.metadata = MetaData()
        self._dialect: Any = postgresql if dialect_name == "postgresql" else sqlite
        self._readings = readings
        self._rows = Table(
            "network_number_parts",
            self.metadata,
            Column("organization_id", Uuid, primary_key=True),
            Column("part", _PLAIN, primary_key=True),
            Column("link_id", Uuid, primary_key=True, index=True),
            sqlite_with_rowid=False,
        )
        # Built once: a search asks the first, every usage that is kept the others.
        self._find = Quick(self._beginning())
        mine = readings.c.link_id == bindparam("link")
        self._insert_missing = Quick(self._missing_of(mine))
        self._delete_others = Quick(self._others_of(mine))

    def find(self, database: Database, organization_id: UUID, part: str, limit: int) -> list[UUID]:
        """Return links whose number holds a part, at most so many, by id."""
        span = {"first": part, "end": part + _LAST, "limit": limit}
        found = database.rows(self._find, organization=organization_id, **span)
        links = {link_id for link_id, number in found if number and part in number}
        return sorted(map(as_id, links))

    def follow(self, connection: Connection, link_id: UUID) -> None:
        """Write the parts of a link's number unless they are there; its reading is locked."""
        if run(connection, self._insert_missing, link=link_id).fetchall():
            run(connection, self._delete_others, link=link_id)

    def forget_strangers(self, database: Database) -> None:
        """Delete the parts of links that have no reading any more."""
        still = exists().where(self._readings.c.link_id == self._rows.c.link_id)
        change_in_parts(database, self._rows.delete(), ~still, self._rows.c.link_id)

    def follow_all(self, database: Database) -> None:
        """Write whatever is missing, as after an upgrade from a release without parts."""
        link_id, after = self._readings.c.link_id, None
        while True:
            some = select(link_id).order_by(link_id).limit(BATCH_LINKS)
            part = some if after is None else some.where(link_id > after)
            with database.writing() as connection:
                links = connection.execute(part.with_for_update()).scalars().all()
                connection.execute(self._missing_of(link_id.in_(links))).all()
                connection.execute(self._others_of(link_id.in_(links)))
            if len(links) < BATCH_LINKS:
                return
            after = links[-1]

    def _beginning(self) -> Select[Any]:
        """Select links by the begin of a part; first of all, or SQLite begins with readings."""
        rows, readings = self._rows.c, self._readings.c
        parts = select(rows.link_id).where(
            rows.organization_id == bindparam("organization"),
            rows.part >= bindparam("first"),
            rows.part < bindparam("end"),
        )
        found = parts.order_by(rows.part, rows.link_id).limit(bindparam("limit")).subquery()
        about = found.join(self._readings, readings.link_id == found.c.link_id)
        return select(found.c.link_id, readings.msisdn).select_from(about)

    def _missing_of(self, wanted: ColumnElement[bool]) -> Insert:
        """Insert each end of these numbers that is not there; a whole number has all of them.

        The key tells which ends are there. A join that asked for them would read the whole table
        where the server has no statistics of it.
        """
        readings = self._readings.c
        numbers = select(readings.organization_id, readings.msisdn.label("part"), readings.link_id)
        numbers = numbers.where(wanted, ~self._has_whole(readings))
        ends = numbers.cte("ends", recursive=True)
        shorter = func.substr(ends.c.part, 2)
        more = select(ends.c.organization_id, shorter, ends.c.link_id)
        ends = ends.union_all(more.where(func.length(ends.c.part) > 1))
        new = select(ends).where(ends.c.part != "")
        made = self._dialect.insert(self._rows)
        made = made.from_select(["organization_id", "part", "link_id"], new)
        filled: Insert = made.on_conflict_do_nothing().returning(self._rows.c.link_id)
        return filled

    def _others_of(self, wanted: ColumnElement[bool]) -> Delete:
        """Delete what is no end of these numbers: they had another one before."""
        rows, number = self._rows.c, self._readings.c.msisdn
        end = func.substr(number, func.length(number) - func.length(rows.part) + 1)
        whole = exists().where(self._readings.c.link_id == rows.link_id, end == rows.part)
        link_ids = select(self._readings.c.link_id).where(wanted)
        return self._rows.delete().where(rows.link_id.in_(link_ids), ~whole)

    def _has_whole(self, reading: Any) -> ColumnElement[bool]:
        rows = self._rows.alias().c
        return exists().where(
            rows.organization_id == reading.organization_id,
            rows.part == reading.msisdn,
            rows.link_id == reading.link_id,
        )
