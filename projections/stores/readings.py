"""The last reading of each link from its network; losing them costs network reads."""

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

import msgspec
from sqlalchemy import (
    BigInteger,
    Column,
    Index,
    LargeBinary,
    MetaData,
    String,
    Table,
    Uuid,
    and_,
    bindparam,
    func,
    or_,
    select,
)

from domain.ids import as_id
from domain.links.network import NetworkReading, NetworkStatus, Usage
from projections.engine.database import Database, to_micros
from projections.engine.hot_reads import HotStatement, OneOf, run
from projections.engine.in_parts import change_in_parts, in_order
from projections.engine.inserting import insert_into
from projections.engine.trigrams import ESCAPE, pattern, trigram_index
from projections.stores.faults import Faults

_USAGE = msgspec.json.Decoder(Usage)
_STATUS = msgspec.json.Decoder(NetworkStatus)


class SqlReadings:
    """One row per link; usage and status each have their own age.

    The MSISDN has a column of its own for searches. It is kept until the network tells another one.
    A store that fails returns nothing.
    """

    def __init__(self, database: Database, faults: Faults) -> None:
        self._database = database
        self._faults = faults
        self.metadata = MetaData()
        self._rows = Table(
            "network_readings",
            self.metadata,
            Column("link_id", Uuid, primary_key=True),
            Column("organization_id", Uuid, nullable=False),
            Column("msisdn", String),
            Column("usage", LargeBinary),
            Column("usage_as_of", BigInteger),
            Column("status", LargeBinary),
            Column("status_as_of", BigInteger),
            trigram_index("network_readings_by_number", "msisdn"),
            Index("network_readings_scanned", "organization_id", "msisdn").ddl_if(dialect="sqlite"),
        )
        columns = self._rows.c
        # Built once, because every read of a link runs it.
        found = select(columns.link_id, columns.msisdn, columns.usage, columns.status)
        self._select = HotStatement(found.where(OneOf(columns.link_id, "links")))
        self._search = HotStatement(
            select(columns.link_id)
            .where(
                columns.organization_id == bindparam("organization"),
                columns.msisdn.like(bindparam("pattern"), escape=ESCAPE),
            )
            .limit(bindparam("limit"))
        )
        self._upserts = {
            "usage_as_of": self._upsert("msisdn", "usage", "usage_as_of"),
            "status_as_of": self._upsert("status", "status_as_of"),
        }

    def load(self, link_ids: Collection[UUID]) -> Mapping[UUID, NetworkReading]:
        """Return the last reading of each of these links; links without any are left out."""
        rows: Sequence[Sequence[Any]] = ()
        with self._faults.swallowed("find"):
            rows = self._database.rows(self._select, links=[*link_ids])
        readings = ((as_id(link_id), _read(*parts)) for link_id, *parts in rows)
        return {link_id: reading for link_id, reading in readings if reading is not None}

    def save_usage(self, organization_id: UUID, link_id: UUID, usage: Usage) -> None:
        """Store a usage, unless a newer one is stored."""
        part = {
            "msisdn": usage.msisdn,
            "usage": msgspec.json.encode(msgspec.structs.replace(usage, msisdn=None)),
            "usage_as_of": to_micros(usage.as_of),
        }
        self._save(organization_id, link_id, part, "usage_as_of")

    def save_status(self, organization_id: UUID, link_id: UUID, status: NetworkStatus) -> None:
        """Store a status, unless a newer one is stored."""
        part = {"status": msgspec.json.encode(status), "status_as_of": to_micros(status.as_of)}
        self._save(organization_id, link_id, part, "status_as_of")

    def with_msisdn(self, organization_id: UUID, part: str, limit: int) -> Sequence[UUID]:
        """Return the ids of at most `limit` links whose MSISDN contains `part`."""
        values = {"organization": organization_id, "pattern": pattern(part), "limit": limit}
        rows: Sequence[Sequence[Any]] = ()
        with self._faults.swallowed("search"):
            rows = self._database.rows(self._search, **values)
        return sorted(as_id(link_id) for (link_id,) in rows)

    def links_of(self, organization_id: UUID, number: str) -> set[UUID]:
        """Return the links that have a number at their network; an error of the database raises."""
        columns = self._rows.c
        mine = (columns.organization_id == organization_id, columns.msisdn == number)
        return {each.link_id for each in self._database.all(select(columns.link_id).where(*mine))}

    def forget(self, before: datetime, organization_id: UUID | None = None) -> int:
        """Forget links with anything stored that is older than a moment; return how many."""
        columns, oldest = self._rows.c, to_micros(before)
        old = or_(columns.usage_as_of < oldest, columns.status_as_of < oldest)
        if organization_id is not None:
            old = and_(old, columns.organization_id == organization_id)
        return change_in_parts(self._database, self._rows.delete(), old, columns.link_id)

    def forget_links(self, organization_id: UUID, link_ids: Collection[UUID]) -> None:
        """Forget what the networks told of these links, and their numbers."""
        columns = self._rows.c
        mine = (columns.organization_id == organization_id, columns.link_id.in_([*link_ids]))
        gone = self._rows.delete().where(in_order(self._rows, *mine))
        self._database.change(gone, durable=True)

    def _save(
        self, organization_id: UUID, link_id: UUID, part: Mapping[str, Any], as_of: str
    ) -> None:
        """Write usage or status in one statement, so that a concurrent write cannot interfere.

        Of two values with the same moment the later write wins, because it was asked for later.
        """
        row = {"link_id": link_id, "organization_id": organization_id, **part}
        statement = self._upserts[as_of]
        with self._faults.swallowed("keep"), self._database.writing() as connection:
            run(connection, statement, **row)

    def _upsert(self, *part: str) -> HotStatement:
        """Return the statement that writes these columns; the last one holds the age."""
        columns, as_of = self._rows.c, part[-1]
        given = ("link_id", "organization_id", *part)
        insert = insert_into(self._rows, self._database.engine.dialect)
        insert = insert.values({name: bindparam(name) for name in given})
        values: dict[str, Any] = {name: insert.excluded[name] for name in part}
        if "msisdn" in part:
            values["msisdn"] = func.coalesce(insert.excluded.msisdn, columns.msisdn)
        statement = insert.on_conflict_do_update(
            index_elements=["link_id"],
            set_=values,
            where=or_(columns[as_of].is_(None), columns[as_of] <= insert.excluded[as_of]),
        )
        return HotStatement(statement)


def _read(msisdn: str | None, usage: bytes | None, status: bytes | None) -> NetworkReading | None:
    try:
        return NetworkReading(
            None if usage is None else msgspec.structs.replace(_USAGE.decode(usage), msisdn=msisdn),
            None if status is None else _STATUS.decode(status),
        )
    except msgspec.MsgspecError:
        return None
