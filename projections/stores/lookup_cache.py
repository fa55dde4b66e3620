"""The cache of lookups, per organization and shared by processes; losing it costs only time.

A thread writes new answers together every 50 ms; until then this process finds them in memory.
"""

import logging
from collections.abc import Mapping, Sequence
from datetime import datetime
from threading import Condition, Thread
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

PACE_S = 0.05  # Between two writes; no request waits for a write, and many answers share one.
ANSWERS_MAX = 20_000  # Beyond this, new answers are dropped; it is only a cache.
CLOSE_S = 10.0

logger = logging.getLogger(__name__)

Unwritten = dict[UUID, dict[str, CachedFacts]]  # By organization and number.


_decode = msgspec.json.Decoder(CachedFacts).decode


class SqlLookupCache:
    """One row per organization and number; a cache that fails finds nothing.

    Answers wait in memory until they are written. A killed process loses them.
    """

    def __init__(self, database: Database, faults: Faults) -> None:
        self._database = database
        self._faults = faults
        self._condition = Condition()
        self._waiting: Unwritten = {}
        self._under_way: Unwritten = {}
        self._thread: Thread | None = None
        self._closed = False
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
        found = self._load_unwritten(organization_id, phone_numbers, not_before)
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
        query = self._database.rows
        if len(numbers) == 1:
            return query(self._select_one, organization=organization_id, number=numbers[0])
        return query(self._select_many, organization=organization_id, numbers=[*numbers])

    def _load_unwritten(
        self, organization_id: UUID, phone_numbers: Sequence[str], not_before: datetime
    ) -> dict[str, CachedFacts]:
        found: dict[str, CachedFacts] = {}
        for unwritten in (self._waiting, self._under_way):
            own = unwritten.get(organization_id)
            if own:
                seen = ((number, own.get(number)) for number in phone_numbers)
                fresh = {n: each for n, each in seen if each and each.as_of >= not_before}
                # Waiting answers are newer than those that are being written.
                found = fresh | found
        return found

    def save(self, organization_id: UUID, answers: Sequence[CachedFacts]) -> None:
        """Store answers, replacing older ones of the same number; they are written soon after."""
        with self._condition:
            waiting = sum(map(len, self._waiting.values()))
            if self._closed or waiting + len(answers) > ANSWERS_MAX:
                return
            own = self._waiting.setdefault(organization_id, {})
            own.update((answer.facts.phone_number, answer) for answer in answers)
            if self._thread is None:
                thread = Thread(target=self._run, name="lookup cache", daemon=True)
                thread.start()  # It may fail; then the next call tries again.
                self._thread = thread
            self._condition.notify_all()

    def flush(self) -> None:
        """Wait until each waiting answer is written, or its writing has failed."""
        with self._condition:
            self._condition.wait_for(lambda: not self._waiting and not self._under_way, CLOSE_S)

    def close(self) -> None:
        """Write the waiting answers; accept no more."""
        with self._condition:
            self._closed = True
            self._condition.notify_all()
        if self._thread is not None:
            self._thread.join(CLOSE_S)

    def _run(self) -> None:
        while self._next_batch():
            try:
                self._write(self._under_way)
            except Exception:
                logger.exception("answers were not written into the cache")
            finally:
                with self._condition:
                    self._under_way = {}
                    self._condition.notify_all()
                    self._condition.wait_for(lambda: self._closed, PACE_S)

    def _next_batch(self) -> bool:
        """Wait for answers and take all of them; False at the end."""
        with self._condition:
            self._condition.wait_for(lambda: self._waiting or self._closed)
            self._under_way, self._waiting = self._waiting, {}
            return bool(self._under_way)

    def _write(self, unwritten: Unwritten) -> None:
        rows = [
            {
                "organization_id": organization_id,
                "phone_number": number,
                "as_of": to_micros(answer.as_of),
                "answer": msgspec.json.encode(answer),
            }
            # In the same order in every process, so that two processes do not deadlock.
            for organization_id, answers in sorted(unwritten.items())
            for number, answer in sorted(answers.items())
        ]
        with self._faults.swallowed("keep"), self._database.writing() as connection:
            upsert(connection, self._rows, rows)

    def forget(
        self, before: datetime, organization_id: UUID | None = None, parts_max: int | None = None
    ) -> int:
        """Delete answers older than a moment, in at most `parts_max` parts; return how many."""
        self.flush()
        columns, is_old = self._rows.c, self._rows.c.as_of < to_micros(before)
        along, within = columns.as_of, is_old
        if organization_id is not None:
            along, within = columns.phone_number, columns.organization_id == organization_id
        gone = self._rows.delete()
        return change_in_parts(self._database, gone, is_old, along, within, parts_max)

    def forget_numbers(self, organization_id: UUID, phone_numbers: Sequence[str]) -> int:
        """Delete the answers of these numbers, at most as many as a job has; return how many."""
        self.flush()
        columns = self._rows.c
        mine = (columns.organization_id == organization_id, columns.phone_number.in_(phone_numbers))
        with self._database.writing(durable=True) as connection:
            gone = self._rows.delete().where(in_order(self._rows, *mine))
            return connection.execute(gone).rowcount


def _decoded(answer: bytes) -> CachedFacts | None:
    try:
        return _decode(answer)
    except msgspec.MsgspecError:
        return None
