"""How many entries of each kind a wallet has had in each hour, and between which sequences.

The times of a wallet's entries are those of requests, on the clocks of several machines: they do
not rise with the sequence, so no index of times has the entries in their order. The hours are a
guide that is right whatever the clocks say: all entries of an hour lie between its two sequences.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple
from uuid import UUID

from sqlalchemy import (
    BigInteger,
    Column,
    Connection,
    String,
    Table,
    Uuid,
    func,
    select,
    true,
)

from projections.inserting import upsert
from projections.read_model import ReadModel

HOUR = 3_600_000_000  # Microseconds.
FOREVER = 2**62 // HOUR * HOUR
ADDED, KEPT = frozenset({"count"}), frozenset({"first"})


class Span(NamedTuple):
    """How many entries match, and the sequences that none of them is outside of."""

    matching: int
    first: int
    last: int


class TransactionHours:
    """A row per organization, kind and hour that has an entry."""

    def __init__(self, model: ReadModel) -> None:
        self.rows: Table = model.table(
            "transaction_hours",
            Column("organization_id", Uuid, primary_key=True),
            Column("kind", String, primary_key=True),
            Column("hour", BigInteger, primary_key=True, autoincrement=False),
            Column("count", BigInteger, nullable=False),
            Column("first", BigInteger, nullable=False),
            Column("last", BigInteger, nullable=False),
        )

    def add(self, connection: Connection, entries: Sequence[Values]) -> None:
        """Count new entries, which are in log order: in that of each wallet's sequences."""
        hours: dict[tuple[int, str, int], dict[str, Any]] = {}
        for entry in entries:
            organization_id, kind = entry["organization_id"], entry["kind"]
            sequence, hour = entry["sequence"], entry["charged_at"] // HOUR
            key = (organization_id.int, kind, hour)  # A UUID is hashed by Python code.
            row = hours.get(key)
            if row is None:
                owner = {"organization_id": organization_id, "kind": kind, "hour": hour}
                row = hours[key] = {**owner, "count": 0, "first": sequence}
            row["count"] += 1
            row["last"] = sequence
        upsert(connection, self.rows, [*hours.values()], added=ADDED, kept=KEPT)

    def span(
        self,
        connection: Connection,
        entries: Table,
        organization_id: UUID,
        kinds: Sequence[str],
        within: tuple[int, int],
    ) -> Span:
        """Count the entries of some kinds from a moment until before another one.

        Whole hours are added up. Of an hour that is cut its own entries are looked at.
        """
        since, until = within
        columns, last_hour = self.rows.c, (until - 1) // HOUR
        cut = {since // HOUR} if since % HOUR else set[int]()
        cut |= {last_hour} if until % HOUR else set()
        statement = select(
            func.coalesce(func.sum(columns.count), 0),
            func.min(columns.first),
            func.max(columns.last),
        ).where(
            columns.organization_id == organization_id,
            columns.kind.in_(kinds),
            columns.hour.between(since // HOUR, last_hour),
            columns.hour.not_in(cut) if cut else true(),
        )
        spans = [Span(*connection.execute(statement).one())]
        for hour in cut:
            part = max(since, hour * HOUR), min(until, (hour + 1) * HOUR) - 1
            spans.append(self._part(connection, entries, organization_id, kinds, hour, part))
        found = [each for each in spans if each.matching]
        return Span(
            int(sum(each.matching for each in found)),
            min((each.first for each in found), default=1),
            max((each.last for each in found), default=0),
        )

    def _part(  # noqa: PLR0913  # Whose, which and when.
        self,
        connection: Connection,
        entries: Table,
        organization_id: UUID,
        kinds: Sequence[str],
        hour: int,
        part: tuple[int, int],
    ) -> Span:
        """Count the entries of a part of an hour, among those between the hour's sequences."""
        columns, sequence = self.rows.c, entries.c.sequence
        in_hour = (
            columns.organization_id == organization_id,
            columns.kind.in_(kinds),
            columns.hour == hour,
        )
        first = select(func.min(columns.first)).where(*in_hour).scalar_subquery()
        last = select(func.max(columns.last)).where(*in_hour).scalar_subquery()
        statement = select(func.count(), func.min(sequence), func.max(sequence)).where(
            entries.c.organization_id == organization_id,
            sequence.between(first, last),
            entries.c.charged_at.between(*part),
            entries.c.kind == kinds[0] if len(kinds) == 1 else true(),
        )
        return Span(*connection.execute(statement).one())
