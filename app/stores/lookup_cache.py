"""The cache of lookups, per organization and shared by processes; losing it costs time only."""

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

from app.stores.faults import Faults
from app.stores.unwritten import Kept, Unwritten
from domain.lookups.ports import CachedFacts
from projections.engine.database import Database, to_micros
from projections.engine.hot_reads import OneOf, Quick
from projections.engine.in_parts import change_in_parts
from projections.engine.inserting import upsert

_decode = msgspec.json.Decoder(CachedFacts).decode


class SqlLookupCache:
    """One row per organization and number. A cache that fails is a cache that misses."""

    def __init__(self, database: Database, faults: Faults) -> None:
        self._database = database
        self._faults = faults
        self._unwritten = Unwritten(self._write)
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
        # Built once: every lookup asks one of them. For one number by the whole key there is but
        # one plan, whatever the planner knows of the table; a condition on the age opens others.
        found = select(columns.phone_number, columns.answer).where(
            columns.organization_id == bindparam("organization")
        )
        self._find_one = Quick(found.where(columns.phone_number == bindparam("number")))
        self._find_many = Quick(found.where(OneOf(columns.phone_number, "numbers")))

    def find(
        self, organization_id: UUID, phone_numbers: Sequence[str], not_before: datetime
    ) -> Mapping[str, CachedFacts]:
        """Return the kept answers of these numbers that are not older than `not_before`."""
        found = self._unwritten.find(organization_id, phone_numbers, not_before)
        others = [number for number in phone_numbers if number not in found]
        if not others:
            return found
        rows: Sequence[Sequence[Any]] = ()
        with self._faults.swallowed("find"):
            rows = self._read(organization_id, others)
        answers = ((number, _decoded(answer)) for number, answer in rows)
        fresh = {n: each for n, each in answers if each is not None and each.as_of >= not_before}
        return fresh | found

    def _read(self, organization_id: UUID, numbers: Sequence[str]) -> Sequence[Sequence[Any]]:
        ask = self._database.rows
        if len(numbers) == 1:
            return ask(self._find_one, organization=organization_id, number=numbers[0])
        return ask(self._find_many, organization=organization_id, numbers=[*numbers])

    def keep(self, organization_id: UUID, answers: Sequence[CachedFacts]) -> None:
        """Keep answers, replacing older ones of the same number; they are written soon after."""
        self._unwritten.add(organization_id, answers)

    def flush(self) -> None:
        """Wait until what was kept is written, and so there for other processes."""
        self._unwritten.flush()

    def close(self) -> None:
        """Write what waits."""
        self._unwritten.close()

    def _write(self, kept: Kept) -> None:
        rows = [
            {
                "organization_id": organization_id,
                "phone_number": number,
                "as_of": to_micros(answer.as_of),
                "answer": msgspec.json.encode(answer),
            }
            # In one order for all processes, so that no two wait for each other's rows.
            for organization_id, answers in sorted(kept.items())
            for number, answer in sorted(answers.items())
        ]
        with self._faults.swallowed("keep"), self._database.writing() as connection:
            upsert(connection, self._rows, rows)

    def forget(
        self, before: datetime, organization_id: UUID | None = None, parts_max: int | None = None
    ) -> int:
        """Delete answers older than a moment, of so many parts at most; return how many."""
        self.flush()
        columns, is_old = self._rows.c, self._rows.c.as_of < to_micros(before)
        along, within = columns.as_of, is_old
        if organization_id is not None:
            along, within = columns.phone_number, columns.organization_id == organization_id
        gone = self._rows.delete()
        return change_in_parts(self._database, gone, is_old, along, within, parts_max)


def _decoded(answer: bytes) -> CachedFacts | None:
    try:
        return _decode(answer)
    except msgspec.MsgspecError:
        return None
