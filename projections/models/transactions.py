"""The transactions: every entry of every wallet in log order, and counters of them by hour.

The time of an entry is that of its request, on the clock of one of several machines. So times do
not rise with the sequence, and no index on times has the entries in their order. For each hour the
counters hold the first and last sequence: all entries of the hour lie between these two, whatever
the clocks say.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

import msgspec
from sqlalchemy import (
    BigInteger,
    Column,
    ColumnElement,
    Connection,
    Row,
    String,
    Table,
    Uuid,
    func,
    select,
    true,
)

from domain.accounts.wallet import Metadata, Reference, Wallet, kind_and_direction, links_of
from domain.log.log import Recorded
from projections.engine.database import from_micros, to_micros
from projections.engine.inserting import Row as Values
from projections.engine.inserting import insert_many, upsert
from projections.engine.read_model import ReadModel

HOUR = 3_600_000_000  # Microseconds.
FOREVER = 2**62 // HOUR * HOUR
ADDED, KEPT = frozenset({"count"}), frozenset({"first"})


class Span(NamedTuple):
    """How many entries match, and the first and last sequence between which all of them lie."""

    matching: int
    first: int
    last: int


class TransactionHours:
    """A row per organization, kind and hour in which there is an entry."""

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
        """Count new entries, which must be in log order, so each wallet's by sequence."""
        hours: dict[tuple[int, str, int], dict[str, Any]] = {}
        for entry in entries:
            organization_id, kind = entry["organization_id"], entry["kind"]
            sequence, hour = entry["sequence"], entry["charged_at"] // HOUR
            # An int, because UUIDs are hashed by slow Python code.
            key = (organization_id.int, kind, hour)
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
        """Count the entries of some kinds from the first moment up to, not including, the second.

        Whole hours are summed from the counters; in an hour that is cut the entries are counted.
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

    def _part(  # noqa: PLR0913  # The organization, the kinds and the time.
        self,
        connection: Connection,
        entries: Table,
        organization_id: UUID,
        kinds: Sequence[str],
        hour: int,
        part: tuple[int, int],
    ) -> Span:
        """Count the entries in a part of an hour, between the hour's two sequences."""
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


KINDS = (
    "activation",
    "topup",
    "refund",
    "monthly_link_fee",
    "lookup",
    "bulk_lookup",
    "deposit",
    "adjustment",
)


@dataclass(frozen=True, slots=True)
class Transaction:
    """One entry; `amount_micros` is positive and `direction` tells whether it came or went."""

    id: UUID
    organization_id: UUID
    sequence: int
    position: int
    kind: str
    direction: str
    amount_micros: int
    balance_micros: int
    currency: str
    charged_at: datetime
    description: str
    reference: Reference
    metadata: Metadata


@dataclass(frozen=True, slots=True)
class Filter:
    """Which transactions to list: `since` is inclusive, `until` is not."""

    kind: str | None = None
    since: datetime | None = None
    until: datetime | None = None
    reference: str | None = None


class Transactions(ReadModel):
    """One row per entry, found by organization and sequence, and one per link that it is about.

    Entries are counted by kind and hour as they come, so that no page has to count its matches.
    """

    name = "transactions"
    version = 3
    uses = (Wallet.Moved,)

    def build(self) -> Sequence[Table]:
        """Define the tables; every index of the entries begins with the organization."""
        self.rows = self.table(
            "transactions",
            Column("id", Uuid, primary_key=True),
            Column("organization_id", Uuid, nullable=False),
            Column("sequence", BigInteger, nullable=False),
            Column("position", BigInteger, nullable=False),
            Column("kind", String, nullable=False),
            Column("direction", String, nullable=False),
            Column("amount_micros", BigInteger, nullable=False),
            Column("balance_micros", BigInteger, nullable=False),
            Column("currency", String, nullable=False),
            Column("charged_at", BigInteger, nullable=False),
            Column("description", String, nullable=False),
            Column("reference_type", String, nullable=False),
            Column("reference_id", String, nullable=False),
            Column("metadata", String, nullable=False),
            self.index("transactions_by_sequence", "organization_id", "sequence", unique=True),
            self.index("transactions_by_kind", "organization_id", "kind", "sequence"),
            self.index("transactions_by_reference", "organization_id", "reference_id", "sequence"),
        )
        self.links = self.table(
            "transaction_links",
            Column("link_id", Uuid, primary_key=True),
            Column("transaction_id", Uuid, primary_key=True),
        )
        self.hours = TransactionHours(self)
        # In the order in which readers lock them, so that a swap cannot deadlock with a reader.
        return [self.links, self.hours.rows, self.rows]

    def project(self, connection: Connection, batch: Sequence[Recorded]) -> None:
        """Insert the entries of the batch in one statement, their links and counts in others."""
        rows: list[Values] = []
        links: list[dict[str, Any]] = []
        for recorded in batch:
            event = recorded.event
            if isinstance(event, Wallet.Moved):
                rows.append(_row(recorded.position, event))
                entry = event.transaction_id
                links += [{"link_id": each, "transaction_id": entry} for each in links_of(event)]
        insert_many(connection, self.rows, rows)
        insert_many(connection, self.links, links)
        self.hours.add(connection, rows)

    def get(
        self, connection: Connection, organization_id: UUID, transaction_id: UUID
    ) -> Transaction | None:
        columns = self.rows.c
        statement = select(self.rows).where(
            columns.id == transaction_id, columns.organization_id == organization_id
        )
        row = connection.execute(statement).one_or_none()
        return _read(row) if row else None

    def page(
        self,
        connection: Connection,
        organization_id: UUID,
        wanted: Filter,
        *,
        offset: int,
        limit: int,
    ) -> tuple[list[Transaction], int]:
        """Return one page of transactions, newest first, and how many match in all."""
        columns = self.rows.c
        own = columns.organization_id == organization_id
        span = self._span(connection, organization_id, wanted)
        # Entries between the first and last match that do not match.
        others = span.last - span.first + 1 - span.matching
        lowest = max(span.first, span.last - offset - limit + 1 - others)
        if not others:
            page = columns.sequence.between(lowest, span.last - offset)
        # From an index on sequences alone, because whole rows would be read up to the offset.
        else:
            found = select(columns.sequence).where(own, *self._conditions(wanted))
            found = found.where(columns.sequence.between(lowest, span.last))
            found = found.order_by(columns.sequence.desc()).offset(offset).limit(limit)
            page = columns.sequence.in_(found)
        rows = select(self.rows).where(own, page).order_by(columns.sequence.desc())
        return [_read(row) for row in connection.execute(rows)], span.matching

    def _span(self, connection: Connection, organization_id: UUID, wanted: Filter) -> Span:
        """Return how many entries match, and the first and last sequence among them."""
        if wanted.reference is None and wanted != Filter():
            kinds = KINDS if wanted.kind is None else [wanted.kind]
            return self.hours.span(connection, self.rows, organization_id, kinds, _within(wanted))
        sequence = self.rows.c.sequence
        own = self.rows.c.organization_id == organization_id
        if wanted == Filter():  # Sequences have no gap, so the newest sequence is the count.
            statement = select(func.coalesce(func.max(sequence), 0)).where(own)
            total = connection.execute(statement).scalar_one()
            return Span(total, 1, total)
        few = select(func.count(), func.min(sequence), func.max(sequence))
        found = connection.execute(few.where(own, *self._conditions(wanted))).one()
        return Span(found[0], found[1] or 1, found[2] or 0)

    def link_history(
        self,
        connection: Connection,
        organization_id: UUID,
        link_id: UUID,
        *,
        offset: int,
        limit: int,
    ) -> tuple[list[Transaction], int]:
        """Return one page of a link's transactions, newest first, and how many there are in all."""
        columns, pair = self.rows.c, self.links.c
        about = self.links.join(self.rows, columns.id == pair.transaction_id)
        # `IS TRUE` keeps SQLite from using the index on the organization and reading all its
        # entries.
        own = (columns.organization_id == organization_id).is_(true())
        conditions = (pair.link_id == link_id, own)
        count = select(func.count()).select_from(about).where(*conditions)
        total = connection.execute(count).scalar_one()
        rows = (
            select(self.rows)
            .select_from(about)
            .where(*conditions)
            .order_by(columns.charged_at.desc(), columns.sequence.desc())
            .offset(offset)
            .limit(limit)
        )
        return [_read(row) for row in connection.execute(rows)], total

    def _conditions(self, wanted: Filter) -> list[ColumnElement[bool]]:
        columns = self.rows.c
        conditions: list[ColumnElement[bool]] = []
        if wanted.kind is not None:
            conditions.append(columns.kind == wanted.kind)
        if wanted.since is not None:
            conditions.append(columns.charged_at >= to_micros(wanted.since))
        if wanted.until is not None:
            conditions.append(columns.charged_at < to_micros(wanted.until))
        if wanted.reference is not None:
            conditions.append(columns.reference_id == wanted.reference)
        return conditions


def _within(wanted: Filter) -> tuple[int, int]:
    """Return the filter's time range in microseconds; an open end becomes the widest bound."""
    since = 0 if wanted.since is None else to_micros(wanted.since)
    return since, FOREVER if wanted.until is None else to_micros(wanted.until)


def _row(position: int, event: Wallet.Moved) -> dict[str, Any]:
    kind, direction = kind_and_direction(event)
    return {
        "id": event.transaction_id,
        "organization_id": event.organization_id,
        "sequence": event.sequence,
        "position": position,
        "kind": kind,
        "direction": direction,
        "amount_micros": abs(event.amount_micros),
        "balance_micros": event.balance_micros,
        "currency": event.currency,
        "charged_at": to_micros(event.timestamp),
        "description": event.description,
        "reference_type": event.reference.type,
        "reference_id": event.reference.id,
        "metadata": msgspec.json.encode(event.metadata).decode(),
    }


def _read(row: Row[tuple[Any, ...]]) -> Transaction:
    return Transaction(
        id=row.id,
        organization_id=row.organization_id,
        sequence=row.sequence,
        position=row.position,
        kind=row.kind,
        direction=row.direction,
        amount_micros=row.amount_micros,
        balance_micros=row.balance_micros,
        currency=row.currency,
        charged_at=from_micros(row.charged_at),
        description=row.description,
        reference=Reference(row.reference_type, row.reference_id),
        metadata=msgspec.json.decode(row.metadata),
    )
