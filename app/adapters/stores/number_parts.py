"""The phone numbers of links, stored by every suffix, so that any part of one can be searched."""

from typing import Any
from uuid import UUID

from sqlalchemy import (
    Column,
    ColumnElement,
    Connection,
    Delete,
    Dialect,
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

from projections.engine.database import Database
from projections.engine.hot_reads import HotStatement, as_id, run
from projections.engine.in_parts import change_in_parts
from projections.engine.inserting import insert_into

BATCH_LINKS = 1_000  # Each link has a dozen parts, so not all links fit into memory.

_LAST = chr(0x10FFFF)  # No character sorts after it.

# Compared byte by byte, so that texts with the same beginning are adjacent in every database.
_PLAIN = String().with_variant(String(collation="C"), "postgresql")


class NumberParts:
    """A row per link and suffix of its number: `+4612` has `+4612`, `4612`, `612`, `12` and `2`.

    Unlike trigrams, plain rows leave no bytes behind when deleted, and two digits can be searched.
    The rows follow the `msisdn` of the readings.
    """

    def __init__(self, readings: Table, dialect: Dialect) -> None:
        self.metadata = MetaData()
        self._dialect = dialect
        self._readings = readings
        self._rows = Table(
            "network_number_parts",
            self.metadata,
            Column("organization_id", Uuid, primary_key=True),
            Column("part", _PLAIN, primary_key=True),
            Column("link_id", Uuid, primary_key=True, index=True),
            sqlite_with_rowid=False,
        )
        # Built once: a search runs the first, each stored usage the others.
        self._find = HotStatement(self._beginning())
        mine = readings.c.link_id == bindparam("link")
        self._insert_missing = HotStatement(self._missing_of(mine))
        self._delete_others = HotStatement(self._others_of(mine))

    def find(self, database: Database, organization_id: UUID, part: str, limit: int) -> list[UUID]:
        """Return the ids of at most `limit` links whose number contains `part`."""
        span = {"first": part, "end": part + _LAST, "limit": limit}
        found = database.rows(self._find, organization=organization_id, **span)
        links = {link_id for link_id, number in found if number and part in number}
        return sorted(map(as_id, links))

    def follow(self, connection: Connection, link_id: UUID) -> None:
        """Write the parts of a link's number unless they exist; its reading is locked."""
        if run(connection, self._insert_missing, link=link_id).fetchall():
            run(connection, self._delete_others, link=link_id)

    def forget_strangers(self, database: Database) -> None:
        """Delete the parts of links that no longer have a reading."""
        still = exists().where(self._readings.c.link_id == self._rows.c.link_id)
        change_in_parts(database, self._rows.delete(), ~still, self._rows.c.link_id)

    def follow_all(self, database: Database) -> None:
        """Write all missing parts, for example after an upgrade from a release without parts."""
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
        """Select links by the beginning of a part; a subquery, so that SQLite starts here."""
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
        """Insert the missing suffixes of these numbers; a number with a row has all its suffixes.

        Existing rows are found by the primary key. A join would read the whole table if the server
        has no statistics about it.
        """
        readings = self._readings.c
        numbers = select(readings.organization_id, readings.msisdn.label("part"), readings.link_id)
        numbers = numbers.where(wanted, ~self._has_whole(readings))
        ends = numbers.cte("ends", recursive=True)
        shorter = func.substr(ends.c.part, 2)
        more = select(ends.c.organization_id, shorter, ends.c.link_id)
        ends = ends.union_all(more.where(func.length(ends.c.part) > 1))
        new = select(ends).where(ends.c.part != "")
        made = insert_into(self._rows, self._dialect)
        made = made.from_select(["organization_id", "part", "link_id"], new)
        return made.on_conflict_do_nothing().returning(self._rows.c.link_id)

    def _others_of(self, wanted: ColumnElement[bool]) -> Delete:
        """Delete the rows of these links that belong to an earlier number."""
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
