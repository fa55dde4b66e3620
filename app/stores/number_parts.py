"""The phone numbers of links by each of their ends, so that any part of one begins one of them."""

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from sqlalchemy import (
    Column,
    ColumnElement,
    Connection,
    MetaData,
    Select,
    String,
    Table,
    Uuid,
    and_,
    bindparam,
    exists,
    select,
)

from projections.database import Database
from projections.in_parts import change_in_parts
from projections.quick import Quick

BATCH_LINKS = 1_000  # Each has a dozen parts, which must not all be in memory.

_LAST = chr(0x10FFFF)  # No character comes after it.

# Compared byte by byte, so that all that begin alike stand together in any database.
_PLAIN = String().with_variant(String(collation="C"), "postgresql")


class NumberParts:
    """A row per link and end of its number: `+4612` is there as `+4612`, `4612`, `612`, `12`, `2`.

    Plain rows and no trigrams: what is deleted leaves no bytes behind, and two digits suffice. It
    follows the readings, whose `msisdn` alone says what the number of a link is.
    """

    def __init__(self, readings: Table) -> None:
        self.metadata = MetaData()
        self._readings = readings
        self._rows = Table(
            "network_number_parts",
            self.metadata,
            Column("organization_id", Uuid, primary_key=True),
            Column("part", _PLAIN, primary_key=True),
            Column("link_id", Uuid, primary_key=True, index=True),
            sqlite_with_rowid=False,
        )
        # Built once: a search asks the first, every usage that is kept the second.
        self._find = Quick(self._beginning())
        self._missing = self._without_parts().where(readings.c.link_id == bindparam("link"))

    def find(self, database: Database, organization_id: UUID, part: str, limit: int) -> list[UUID]:
        """Return links whose number holds a part, at most so many, by id."""
        span = {"first": part, "end": part + _LAST, "limit": limit}
        found = database.rows(self._find, organization=organization_id, **span)
        links = {link_id for link_id, number in found if number and part in number}
        return sorted(UUID(each) if isinstance(each, str) else each for each in links)

    def follow(self, connection: Connection, link_id: UUID) -> None:
        """Write the parts of a link's number unless they are there; its reading is locked."""
        self._write(connection, connection.execute(self._missing, {"link": link_id}).all())

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
                missing = self._without_parts().where(link_id.in_(links))
                self._write(connection, connection.execute(missing).all())
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

    def _without_parts(self) -> Select[Any]:
        readings, rows = self._readings.c, self._rows.c
        whole: ColumnElement[bool] = and_(
            rows.organization_id == readings.organization_id,
            rows.part == readings.msisdn,
            rows.link_id == readings.link_id,
        )
        columns = (readings.organization_id, readings.link_id, readings.msisdn)
        return select(*columns).where(readings.msisdn.is_not(None), ~exists().where(whole))

    def _write(self, connection: Connection, numbers: Sequence[Any]) -> None:
        if not numbers:
            return
        old = self._rows.delete().where(self._rows.c.link_id == bindparam("link"))
        connection.execute(old, [{"link": each.link_id} for each in numbers])
        parts = [
            {"organization_id": each.organization_id, "part": part, "link_id": each.link_id}
            for each in numbers
            for part in {each.msisdn[start:] for start in range(len(each.msisdn))}
        ]
        if parts:
            connection.execute(self._rows.insert(), parts)
