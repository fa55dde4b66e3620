"""The transactions: every entry of every wallet in log order, and sums of them by hour.

The time of an entry is that of its request, on the clock of one of several machines. So times do
not rise with the sequence, and no index on times has the entries in their order. For each hour the
sums hold the first and last sequence: all entries of the hour lie between these two, whatever the
clocks say. The sums over all wallets hold positions in their place.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from itertools import chain
from typing import Annotated, Any, Final, NamedTuple
from uuid import UUID

import msgspec
from msgspec import UNSET, Struct, UnsetType
from sqlalchemy import (
    BigInteger,
    Column,
    ColumnElement,
    Connection,
    Integer,
    Select,
    String,
    Table,
    Uuid,
    bindparam,
    case,
    cast,
    func,
    select,
    true,
    union_all,
)

from domain.accounts.paid_price import REFUND_REASONS, RefundReason, Repaying
from domain.accounts.wallet import BOOKED, Wallet, kind_of, links_of
from domain.aggregates import topics_but
from domain.ids import as_id
from domain.log.aggregate import ByOperator, Event
from domain.log.log import Recorded
from domain.webhooks.messages import OF_ENTRIES, Entry
from projections.engine.database import Database, from_micros, to_micros
from projections.engine.hot_reads import HotStatement, OneOf
from projections.engine.inserting import Row as Values
from projections.engine.inserting import insert_many, upsert
from projections.engine.read_model import BATCH_EVENTS_MAX, ReadModel
from projections.engine.shape import (
    MORE_MAY_COME,
    PLAN_NAME,
    Amount,
    Currency,
    Moment,
    Shape,
    Stored,
    id_of,
    means,
    one_of,
    stored,
)

HOUR = 3_600_000_000  # Microseconds.
FOREVER = 2**62 // HOUR * HOUR
ADDED, FIXED = frozenset({"count", "debit_micros", "credit_micros"}), frozenset({"first"})
NONE = {"count": 0, "last": 0, "debit_micros": 0, "credit_micros": 0}
# Owns the sums over all wallets, so that no read adds up the hours of every organization.
EVERYBODY = UUID(int=0)


class Span(NamedTuple):
    """How many entries match, and the first and last sequence between which all of them lie."""

    matching: int
    first: int
    last: int


class TransactionHours:
    """A row per organization, kind and hour with an entry, and one over all organizations."""

    def __init__(self, model: ReadModel) -> None:
        self.rows: Table = model.table(
            "transaction_hours",
            Column("organization_id", Uuid, primary_key=True),
            Column("kind", String, primary_key=True),
            Column("hour", BigInteger, primary_key=True, autoincrement=False),
            *(Column(name, BigInteger, nullable=False) for name in ("first", *NONE)),
        )

    def add(self, connection: Connection, entries: Sequence[Values]) -> None:
        """Add new entries, which must be in log order, so each wallet's by sequence."""
        rows: dict[tuple[int, str, int], dict[str, Any]] = {}
        for entry in entries:
            kind, hour = entry["kind"], entry["charged_at"] // HOUR
            side = "debit_micros" if entry["direction"] == "debit" else "credit_micros"
            mine, all_in_all = (entry["organization_id"], "sequence"), (EVERYBODY, "position")
            for owner, order in (mine, all_in_all):
                # An int, because UUIDs are hashed by slow Python code.
                row = rows.get((owner.int, kind, hour))
                if row is None:
                    facts = {"kind": kind, "hour": hour, "first": entry[order]}
                    row = {"organization_id": owner, **facts, **NONE}
                    rows[owner.int, kind, hour] = row
                row["count"] += 1
                row["last"] = entry[order]
                row[side] += entry["amount_micros"]
        upsert(connection, self.rows, [*rows.values()], added=ADDED, fixed=FIXED)

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
        hours, sequence, last_hour = self.rows.c, entries.c.sequence, (until - 1) // HOUR
        cut = {each // HOUR for each in within if each % HOUR}
        mine = hours.organization_id == organization_id, hours.kind.in_(kinds)
        first, last = func.min(hours.first), func.max(hours.last)
        whole = select(func.coalesce(func.sum(hours.count), 0), first, last).where(
            *mine,
            hours.hour.between(since // HOUR, last_hour),
            hours.hour.not_in(cut) if cut else true(),
        )
        spans = [Span(*connection.execute(whole).one())]
        for hour in cut:
            in_hour = (select(each).where(*mine, hours.hour == hour) for each in (first, last))
            low, high = (each.scalar_subquery() for each in in_hour)
            part = max(since, hour * HOUR), min(until, (hour + 1) * HOUR) - 1
            counted = select(func.count(), func.min(sequence), func.max(sequence)).where(
                entries.c.organization_id == organization_id,
                sequence.between(low, high),
                entries.c.charged_at.between(*part),
                entries.c.kind == kinds[0] if len(kinds) == 1 else true(),
            )
            spans.append(Span(*connection.execute(counted).one()))
        found = [each for each in spans if each.matching]
        return Span(
            int(sum(each.matching for each in found)),
            min((each.first for each in found), default=1),
            max((each.last for each in found), default=0),
        )


REPLAYED = (Wallet.Moved, Repaying, ByOperator)
KINDS = ("activation", "topup", "refund", "monthly_link_fee", "lookup", "bulk_lookup", *BOOKED)
KIND: Final = one_of("TransactionKind", KINDS, MORE_MAY_COME)
REASON: Final = one_of("RefundReason", REFUND_REASONS, MORE_MAY_COME)
DIRECTION: Final = one_of("Direction", ["debit", "credit"])


class Reference(Struct):
    """What money was for."""

    type: Annotated[str, means("What it names.", example="link")]
    id: Annotated[str, means("Its id.", example=id_of("link"))]


class Transaction(Shape):
    """One entry of the wallet."""

    id: Annotated[UUID, means("The transaction.")]
    sequence: Annotated[int, means("1, 2, 3 … in each wallet, without a gap.", example=7)]
    kind: Annotated[str, means("What it was.", **KIND)]
    amount: Annotated[Amount, means("Never negative; `direction` says which way it went.")]
    direction: Annotated[
        str, means("Whether it took from the balance or added to it.", **DIRECTION)
    ]
    currency: Currency
    charged_at: Annotated[Moment, means("When it was entered (UTC).")]
    plan_name: Annotated[str | None, means("The plan it paid for, if any.", example=PLAN_NAME)]
    description: Annotated[str, means("The same, for people.", example=f"Activation: {PLAN_NAME}")]
    reference: Annotated[Reference, stored("parts")]
    metadata: Annotated[
        dict[str, Any],
        means(
            "More about it, by kind.",
            example={"link_id": id_of("link"), "plan_id": id_of("plan"), "plan_name": PLAN_NAME},
            additionalProperties=True,
        ),
    ]
    balance_after: Annotated[
        Amount, means("What the wallet held then."), stored("amount", "balance_micros")
    ]
    position: Annotated[int, means("Its place in the event log: rising, with gaps.", example=4711)]
    refund_of: Annotated[
        UUID | UnsetType, means("There on a refund: the transaction that it gives back.")
    ] = UNSET
    reason: Annotated[str | UnsetType, means("There on a refund: why it came.", **REASON)] = UNSET


STORED = Stored(Transaction)
# Every table of transactions has these columns.
COLUMNS = (
    *("sequence", "position", "charged_at", "kind", "direction", "amount", "currency"),
    *("balance_after", "plan_name", "description", "reference_type", "reference_id"),
    *("refund_of", "reason", "id", "metadata"),
)


class EntryFilter(NamedTuple):
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
    version = 6
    uses = (Wallet.Moved, Repaying)

    def build(self) -> Sequence[Table]:
        """Define the tables; the last index of the entries serves pages over all organizations."""
        self.rows = self.table(
            "transactions",
            *STORED.columns("id"),
            Column("organization_id", Uuid, nullable=False),
            self.index("transactions_by_sequence", "organization_id", "sequence", unique=True),
            self.index("transactions_by_kind", "organization_id", "kind", "sequence"),
            self.index("transactions_by_reference", "organization_id", "reference_id", "sequence"),
            self.index("transactions_by_position", "kind", "position"),
        )
        self.links = self.table(
            "transaction_links",
            Column("link_id", Uuid, primary_key=True),
            Column("transaction_id", Uuid, primary_key=True),
        )
        self.hours = TransactionHours(self)
        self._before = HotStatement(self._newest_before())
        self._next: dict[Sequence[str], HotStatement] = {}  # By the types that are wanted.
        columns = self.rows.c
        new = (columns.position > bindparam("after"), columns.position <= bindparam("until"))
        news = select(columns.organization_id, columns.kind).distinct()
        self._news = HotStatement(news.where(OneOf(columns.kind, "kinds"), *new))
        # In the order in which readers lock them, so that a swap cannot deadlock with a reader.
        return [self.links, self.hours.rows, self.rows]

    def project(self, connection: Connection, batch: Sequence[Recorded]) -> None:
        """Insert the entries of the batch in one statement, their links and counts in others."""
        rows: list[Values] = []
        links: list[dict[str, Any]] = []
        reasons = self._reasons(batch)
        for recorded in batch:
            event = recorded.event
            if isinstance(event, Wallet.Moved):
                rows.append(_row(recorded.position, event, reasons))
                entry = event.transaction_id
                links += [{"link_id": each, "transaction_id": entry} for each in links_of(event)]
        insert_many(connection, self.rows, rows)
        insert_many(connection, self.links, links)
        self.hours.add(connection, rows)

    def _reasons(self, batch: Sequence[Recorded]) -> Mapping[UUID, RefundReason]:
        """Return the reasons of the refunds in a batch, as the events of their failures tell them.

        A failure comes before its refunds, in the same commit. If the batch began between them, an
        older refund, which does not tell its reason, has it from the log.
        """
        known = _reasons_in([each.event for each in batch])
        refunds = (each.event for each in batch if isinstance(each.event, Wallet.Refunded))
        if any(not each.reason and each.transaction_id not in known for each in refunds):
            last = batch[0].position - 1
            after = max(0, last - BATCH_EVENTS_MAX)
            before = self.log.follow(after, BATCH_EVENTS_MAX, topics_but((Repaying,)), last)
            known = _reasons_in([each.event for each in before.events]) | known
        return known

    def get(
        self, connection: Connection, transaction_id: UUID, organization_id: UUID | None = None
    ) -> Transaction | None:
        """Return a transaction of an organization, or whoever owns it."""
        columns = self.rows.c
        is_owned = true() if organization_id is None else columns.organization_id == organization_id
        statement = select(self.rows).where(columns.id == transaction_id, is_owned)
        row = connection.execute(statement).one_or_none()
        return STORED.read(row) if row else None

    def about(self, connection: Connection, link_id: UUID) -> Sequence[int]:
        """Return the positions of the entries about a link, whoever owns it."""
        columns, pair = self.rows.c, self.links.c
        mine = columns.id.in_(select(pair.transaction_id).where(pair.link_id == link_id))
        return connection.execute(select(columns.position).where(mine)).scalars().all()

    def page(
        self, connection: Connection, organization_id: UUID, wanted: EntryFilter, part: slice
    ) -> tuple[list[Transaction], int]:
        """Return a part of the transactions, newest first, and how many match in all."""
        columns = self.rows.c
        own = columns.organization_id == organization_id
        span = self.span(connection, organization_id, wanted)
        # Entries between the first and last match that do not match.
        others = span.last - span.first + 1 - span.matching
        lowest = max(span.first, span.last - part.stop + 1 - others)
        if not others:
            page = columns.sequence.between(lowest, span.last - part.start)
        # From an index on sequences alone, because whole rows would be read up to the part.
        else:
            found = select(columns.sequence).where(own, *self._conditions(wanted))
            found = found.where(columns.sequence.between(lowest, span.last))
            found = found.order_by(columns.sequence.desc()).slice(part.start, part.stop)
            page = columns.sequence.in_(found)
        rows = select(self.rows).where(own, page).order_by(columns.sequence.desc())
        return [*map(STORED.read, connection.execute(rows))], span.matching

    def behind(
        self, connection: Connection, organization_id: UUID, after: int, part: slice
    ) -> tuple[list[Transaction], int]:
        """Return a part of the transactions behind a sequence, oldest first, and their number."""
        columns = self.rows.c
        page = columns.sequence.between(after + part.start + 1, after + part.stop)
        rows = select(self.rows).where(columns.organization_id == organization_id, page)
        found = connection.execute(rows.order_by(columns.sequence))
        newest = self.span(connection, organization_id, EntryFilter()).last
        return [*map(STORED.read, found)], max(0, newest - after)

    def listed(
        self,
        connection: Connection,
        organization_id: UUID,
        wanted: EntryFilter,
        within: tuple[int, int],
        limit: int,
    ) -> list[Transaction]:
        """Return transactions between two sequences, newest first: a part of a long list."""
        columns = self.rows.c
        conditions = (columns.organization_id == organization_id, columns.sequence.between(*within))
        rows = select(self.rows).where(*conditions, *self._conditions(wanted))
        rows = rows.order_by(columns.sequence.desc()).limit(limit)
        return [*map(STORED.read, connection.execute(rows))]

    def span(self, connection: Connection, organization_id: UUID, wanted: EntryFilter) -> Span:
        """Return how many entries match, and the first and last sequence among them."""
        if wanted.reference is None and wanted != EntryFilter():
            kinds = KINDS if wanted.kind is None else [wanted.kind]
            since = 0 if wanted.since is None else to_micros(wanted.since)
            within = since, FOREVER if wanted.until is None else to_micros(wanted.until)
            return self.hours.span(connection, self.rows, organization_id, kinds, within)
        sequence = self.rows.c.sequence
        own = self.rows.c.organization_id == organization_id
        if wanted == EntryFilter():  # Sequences have no gap, so the newest sequence is the count.
            statement = select(func.coalesce(func.max(sequence), 0)).where(own)
            total = connection.execute(statement).scalar_one()
            return Span(total, 1, total)
        few = select(func.count(), func.min(sequence), func.max(sequence))
        found = connection.execute(few.where(own, *self._conditions(wanted))).one()
        return Span(found[0], found[1] or 1, found[2] or 0)

    def link_history(
        self, connection: Connection, organization_id: UUID, link_id: UUID, part: slice
    ) -> tuple[list[Transaction], int]:
        """Return a part of a link's transactions, newest first, and how many there are in all."""
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
            .slice(part.start, part.stop)
        )
        return [*map(STORED.read, connection.execute(rows))], total

    def entries(
        self,
        database: Database,
        organization_id: UUID,
        span: tuple[int, int],
        types: Collection[str],
        limit: int,
    ) -> list[tuple[str, Entry]]:
        """Return the first entries between two positions about which there are messages of types.

        Sequences rise with positions, so the entry at a position is found by halving; an index on
        positions would cost every lookup some bytes.
        """
        after, until = span
        own = {"owner": organization_id}
        before = database.rows(self._before, **own, after=after)[0][0] if after > 0 else 0
        given = {**own, "before": before, "until": until, "limit": limit}
        wanted = tuple(name for name in OF_ENTRIES if name in types)
        hot = self._next.get(wanted)
        if hot is None:
            hot = self._next[wanted] = HotStatement(self._next_of(wanted))
        return [_entry_of(organization_id, row) for row in database.rows(hot, **given)]

    def news(self, database: Database, after: int, until: int) -> Mapping[int, set[str]]:
        """Return the types of the messages about entries between two positions, by organization."""
        news = defaultdict[int, set[str]](set)
        for owner, kind in database.rows(self._news, kinds=[*TYPE_OF], after=after, until=until):
            news[as_id(owner).int].add(TYPE_OF[kind])
        return news

    def _newest_before(self) -> Select[Any]:
        """Select the sequence of an organization's last entry at or before a position, or 0."""
        own = self.rows.c.organization_id == bindparam("owner", type_=Uuid())
        sequence, big = self.rows.c.sequence, BigInteger()
        newest = select(func.coalesce(func.max(sequence), 0)).where(own).scalar_subquery()
        bounds = select(cast(0, big).label("low"), cast(newest, big).label("high"))
        found = bounds.cte("bounds", recursive=True)
        low, high = found.c.low, found.c.high
        middle = (low + high + 1) // 2
        at = select(self.rows.c.position).where(own, sequence == middle).correlate(found)
        is_before = at.scalar_subquery() <= bindparam("after")
        halves = case((is_before, middle), else_=low), case((is_before, high), else_=middle - 1)
        found = found.union_all(select(*(cast(each, big) for each in halves)).where(low < high))
        return select(found.c.low).where(found.c.low == found.c.high)

    def _next_of(self, types: Sequence[str]) -> Select[Any]:
        """Select the entries behind a sequence; each kind is found in the index by itself."""
        columns, limit = self.rows.c, bindparam("limit", type_=Integer)
        own = columns.organization_id == bindparam("owner", type_=Uuid())
        new = (columns.sequence > bindparam("before"), columns.position <= bindparam("until"))
        shown = select(*(columns[name] for name in _OF_ENTRY)).where(own, *new)
        each = (
            shown.where(columns.kind == kind).order_by(columns.sequence).limit(limit).subquery()
            for name in types
            for kind in OF_ENTRIES[name][0]
        )
        every = union_all(*map(select, each)).subquery()
        return select(every).order_by(every.c.sequence).limit(limit)

    def _conditions(self, wanted: EntryFilter) -> Iterator[ColumnElement[bool]]:
        columns = self.rows.c
        if wanted.kind is not None:
            yield columns.kind == wanted.kind
        if wanted.since is not None:
            yield columns.charged_at >= to_micros(wanted.since)
        if wanted.until is not None:
            yield columns.charged_at < to_micros(wanted.until)
        if wanted.reference is not None:
            yield columns.reference_id == wanted.reference


# The type of the messages about entries of a kind.
TYPE_OF: Mapping[str, str] = {kind: name for name, of in OF_ENTRIES.items() for kind in of[0]}
_OF_ENTRY = (
    *("kind", "direction", "position", "charged_at", "id", "sequence", "amount_micros"),
    *("balance_micros", "currency", "refund_of"),
)


def _entry_of(owner: UUID, row: Sequence[Any]) -> tuple[str, Entry]:
    kind, direction, position, at, entry_id, sequence, amount, balance, currency, charge = row
    signed = -amount if direction == "debit" else amount
    moved = (as_id(entry_id), sequence, signed, balance, currency)
    charge_id = None if charge is None else as_id(charge)
    return TYPE_OF[kind], Entry(owner, position, from_micros(at), *moved, charge_id)


class Replayed(NamedTuple):
    """A transaction as its event tells it, and the operator whose command made it, if any."""

    organization_id: UUID
    at: datetime
    entry: Transaction
    actor: str | None


def replayed(events: Iterable[Recorded]) -> Iterator[Replayed]:
    """Yield the transactions of a log; no read model is needed.

    `events` are those of `REPLAYED`, from the first one on.
    """
    reasons: dict[UUID, RefundReason] = {}
    request_id, actor = "", None
    for position, event in events:
        if isinstance(event, Repaying):
            reasons |= event.reasons()
        if isinstance(event, ByOperator):
            request_id, actor = event.request_id, event.actor
        if isinstance(event, Wallet.Moved):
            row = _row(position, event, reasons)
            reasons.pop(event.transaction_id, None)
            entry = STORED.read([row[name] for name in STORED.names])
            by = actor if event.request_id == request_id else None
            yield Replayed(event.organization_id, event.timestamp, entry, by)


def _reasons_in(events: Iterable[Event]) -> dict[UUID, RefundReason]:
    repaying = (each for each in events if isinstance(each, Repaying))
    return dict(chain.from_iterable(each.reasons().items() for each in repaying))


def _row(
    position: int, event: Wallet.Moved, reasons: Mapping[UUID, RefundReason]
) -> dict[str, Any]:
    refund = event if isinstance(event, Wallet.Refunded) else None
    return {
        "id": event.transaction_id,
        "organization_id": event.organization_id,
        "sequence": event.sequence,
        "position": position,
        "kind": kind_of(event),
        "direction": "debit" if event.change_micros < 0 else "credit",
        "amount_micros": abs(event.amount_micros),
        "balance_micros": event.balance_micros,
        "currency": event.currency,
        "charged_at": to_micros(event.timestamp),
        "plan_name": event.metadata.get("plan_name"),
        "description": event.description,
        "reference_type": event.reference.type,
        "reference_id": event.reference.id,
        "metadata": msgspec.json.encode(event.metadata).decode(),
        "refund_of": refund and refund.charge_id,
        "reason": refund and (refund.reason or reasons.get(refund.transaction_id)),
    }
