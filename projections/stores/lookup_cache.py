"""The cache of lookups, per organization and shared by processes; losing it costs only time."""

from collections.abc import Mapping, Sequence
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
    bindparam,
    select,
)

from domain.lookups.ports import CachedFacts
from projections.engine.database import Database, to_micros
from projections.engine.hot_reads import HotStatement, OneOf
from projections.engine.in_parts import change_in_parts, in_order
from projections.engine.inserting import upsert
from projections.stores.faults import Faults

_decode = msgspec.json.Decoder(CachedFacts).decode


class SqlLookupCache:
    """One row per organization and number; a cache that fails finds nothing."""

    def __init__(self, database: Database, faults: Faults) -> None:
        self._database = database
        self._faults = faults
        self.metadata = MetaData()
        self._rows = Table(
            "lookup_cache",
            self.metadata,
            Column("organization_id", Uuid, primary_key=True),
            Column("phone_number", String, primary_key=True),
            Column("as_of", BigInteger, nullable=False),
            Column("answer", LargeBinary, nullable=False),
            Index("lookup_cache_by_age", "as_of"),
            sqlite_with_rowid=False,
        )
        columns = self._rows.c
        # Built once, because every lookup runs one of them. Without a condition on the age the
        # planner has only one plan for a whole key.
        found = select(columns.phone_number, columns.answer).where(
            columns.organization_id == bindparam("organization")
        )
        self._select_one = HotStatement(found.where(columns.phone_number == bindparam("number")))
        self._select_many = HotStatement(found.where(OneOf(columns.phone_number, "numbers")))

    def load(
        self, organization_id: UUID, phone_numbers: Sequence[str], not_before: datetime
    ) -> Mapping[str, CachedFacts]:
        """Return the stored answers of these numbers that are not older than `not_before`."""
        rows: Sequence[Sequence[Any]] = ()
        with self._faults.swallowed("find"):
            rows = self._read(organization_id, phone_numbers)
        answers = ((number, _decoded(answer)) for number, answer in rows)
        return {n: each for n, each in answers if each is not None and each.as_of >= not_before}

    def _read(self, organization_id: UUID, numbers: Sequence[str]) -> Sequence[Sequence[Any]]:
        query = self._database.rows
        if len(numbers) == 1:
            return query(self._select_one, organization=organization_id, number=numbers[0])
        return query(self._select_many, organization=organization_id, numbers=[*numbers])

    def save(self, organization_id: UUID, answers: Sequence[CachedFacts]) -> None:
        """Store answers, replacing older ones of the same number."""
        # By number, which two rows of a statement must not share, and in the same order in every
        # process, so that two processes do not deadlock.
        named = {answer.facts.phone_number: answer for answer in answers}
        rows = [
            {
                "organization_id": organization_id,
                "phone_number": number,
                "as_of": to_micros(answer.as_of),
                "answer": msgspec.json.encode(answer),
            }
            for number, answer in sorted(named.items())
        ]
        with self._faults.swallowed("keep"), self._database.writing() as connection:
            upsert(connection, self._rows, rows)

    def forget(
        self, before: datetime, organization_id: UUID | None = None, parts_max: int | None = None
    ) -> int:
        """Delete answers older than a moment, in at most `parts_max` parts; return how many."""
        columns, is_old = self._rows.c, self._rows.c.as_of < to_micros(before)
        along, within = columns.as_of, is_old
        if organization_id is not None:
            along, within = columns.phone_number, columns.organization_id == organization_id
        gone = self._rows.delete()
        return change_in_parts(self._database, gone, is_old, along, within, parts_max)

    def forget_numbers(self, organization_id: UUID, phone_numbers: Sequence[str]) -> int:
        """Delete the answers of these numbers, at most as many as a job has; return how many."""
        columns = self._rows.c
        mine = (columns.organization_id == organization_id, columns.phone_number.in_(phone_numbers))
        gone = self._rows.delete().where(in_order(self._rows, *mine))
        return self._database.change(gone, durable=True)


def _decoded(answer: bytes) -> CachedFacts | None:
    try:
        return _decode(answer)
    except msgspec.MsgspecError:
        return None
