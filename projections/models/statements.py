"""The statements: what happened in each wallet in each month, and which months are closed.

A month without an entry has no row: its statement follows from the one before it.
"""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import fields
from itertools import groupby
from operator import itemgetter
from typing import Any
from uuid import UUID

from sqlalchemy import (
    BigInteger,
    Column,
    Connection,
    RowMapping,
    String,
    Table,
    Uuid,
    cast,
    func,
    null,
    select,
)

from domain.accounts.wallet import Wallet
from domain.finance.statement import KindLine, Month, Statement, statement_month
from domain.ids import as_id
from domain.log.log import Recorded
from domain.months import months_before, next_month
from projections.engine.hot_reads import HotStatement, OneOf, run
from projections.engine.inserting import insert_many, upsert
from projections.engine.read_model import ReadModel

FIXED = frozenset({"currency", "opening_micros", "first_sequence", "first_position"})
SUMS = frozenset({"count", "debit_micros", "credit_micros"})
LINE = tuple(each.name for each in fields(KindLine))


class Statements(ReadModel):
    """A row per organization, month and kind of entry; a row per month that is closed."""

    name = "statements"
    uses = (Wallet.Moved, Month.Closed)

    def build(self) -> Sequence[Table]:
        self.lines = self.table(
            "statement_lines",
            Column("organization_id", Uuid, primary_key=True),
            Column("month", String, primary_key=True),
            Column("kind", String, primary_key=True),
            Column("currency", String, nullable=False),
            *(Column(name, BigInteger, nullable=False) for name in LINE),
            self.index("statement_lines_by_month", "month"),
        )
        self.closed = self.table(
            "closed_months",
            Column("month", String, primary_key=True),
            Column("position", BigInteger, nullable=False),
        )
        columns = self.lines.c
        newest = select(columns.organization_id, func.max(columns.month))
        newest = newest.where(OneOf(columns.organization_id, "owners"))
        closed = select(cast(null(), Uuid), func.max(self.closed.c.month))
        newest_of_each = newest.group_by(columns.organization_id).union_all(closed)
        self._newest = HotStatement(newest_of_each)
        # In the order in which readers lock them, so that a swap cannot deadlock with a reader.
        return [self.closed, self.lines]

    def has(self, connection: Connection, kind: str) -> bool:
        """Tell whether any wallet has an entry of a kind."""
        found = select(self.lines.c.kind).where(self.lines.c.kind == kind).limit(1)
        return connection.execute(found).first() is not None

    def project(self, connection: Connection, batch: Sequence[Recorded]) -> None:
        """Add the entries of the batch to their months, after one read of the newest months."""
        moved = (event for _, event in batch if isinstance(event, Wallet.Moved))
        # By int: UUIDs are hashed by slow code.
        owners = {event.organization_id.int: event.organization_id for event in moved}
        previous, closed = self._standing(connection, owners.values()) if owners else ({}, "")
        parts: dict[tuple[int, str], Statement] = {}
        ends: list[dict[str, Any]] = []
        for position, event in batch:
            if isinstance(event, Month.Closed):
                closed = event.month
                ends.append({"month": closed, "position": position})
            elif isinstance(event, Wallet.Moved):
                owner = event.organization_id.int
                month = statement_month(event.timestamp, previous.get(owner, ""), closed)
                previous[owner] = month
                part = parts.get((owner, month))
                if part is None:
                    part = parts[owner, month] = Statement.begin(month, event)
                part.enter(position, event)
        insert_many(connection, self.closed, ends)
        rows = [row for part in parts.values() for row in _rows(part)]
        upsert(connection, self.lines, rows, added=SUMS, fixed=FIXED)

    def _standing(
        self, connection: Connection, owners: Collection[UUID]
    ) -> tuple[dict[int, str], str]:
        """Return the month of the newest entry of each wallet, and the last month closed or ""."""
        found = dict(map(tuple, run(connection, self._newest, owners=[*owners])))
        last: str = found.pop(None) or ""
        return {as_id(owner).int: month for owner, month in found.items()}, last

    def closed_at(self, connection: Connection, month: str) -> int | None:
        """Return the position at which a month was closed; None while it is open."""
        closes = self.closed.c
        first = select(func.min(closes.position)).where(closes.month >= month)
        found: int | None = connection.execute(first).scalar_one()
        return found

    def all_of(self, connection: Connection, organization_id: UUID) -> tuple[list[Statement], str]:
        """Return the statements of an organization, oldest first, and the last closed month or "".

        There is one for each month from its first entry to the month after the last closed one.
        Closes are read before lines, so that the lines hold all entries of closed months.
        """
        last = connection.execute(select(func.max(self.closed.c.month))).scalar_one()
        own = select(self.lines).where(self.lines.c.organization_id == organization_id)
        rows = connection.execute(own.order_by(self.lines.c.month)).mappings().all()
        found: list[Statement] = []
        for month, its_rows in groupby(rows, itemgetter("month")):
            found += _between(found, month)
            found.append(_read(organization_id, month, [*its_rows]))
        if last is not None:
            found += _between(found, next_month(next_month(last)))
        return found, last or ""


def _rows(part: Statement) -> Iterator[dict[str, Any]]:
    for kind, line in part.lines.items():
        key = {"organization_id": part.organization_id, "month": part.month, "kind": kind}
        yield {**key, "currency": part.currency, **{name: getattr(line, name) for name in LINE}}


def _read(organization_id: UUID, month: str, rows: Sequence[RowMapping]) -> Statement:
    lines = {row["kind"]: KindLine(**{name: row[name] for name in LINE}) for row in rows}
    return Statement.of(organization_id, month, rows[0]["currency"], lines)


def _between(found: Sequence[Statement], month: str) -> list[Statement]:
    """Return the empty statements that follow those found, before a month."""
    if not found:
        return []
    return [found[-1].empty_in(each) for each in months_before(next_month(found[-1].month), month)]
