"""What the finance view reads; every figure comes from a SQL view that others can read too."""

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from datetime import UTC, date, datetime, timedelta
from itertools import count
from typing import Any, NamedTuple
from uuid import UUID

from sqlalchemy import BigInteger, ColumnElement, Row, Select, case, cast, func, select, union_all

from domain.cause import OPERATOR, is_operator
from domain.money import MICROS
from projections.audit.covering import ChangedCheckpoint, covering, signed_in
from projections.engine.database import Database, to_micros
from projections.finance.views import (
    AUDITS,
    BESIDE_THE_LOG,
    CHECKPOINTS,
    COSTS,
    DAILY,
    EVENTS,
    OVER_READ_MODELS,
    STATEMENT_LINES,
    STATEMENTS,
    TOTALS,
    TRANSACTIONS,
    WALLETS,
)
from projections.models.transactions import KINDS

NEAR = 200  # Events of one commit are closer than this; other events may be between.
EVENTS_MAX = 500
PROPOSED = ("adjustment.", "proposal.")
SAME_MAX = 500  # Entries of one reference: each slice of a job can have a refund.
DAY_MICROS = 24 * 60 * 60 * MICROS  # Added as a number, because `date.max` has no next day.
DOWNLOAD_ROWS = 2_000  # How many a download reads at once.

_WALLET, _ENTRY, _EVENT = WALLETS.table, TRANSACTIONS.table, EVENTS.table
_STATEMENT, _LINE, _CHECKPOINT = STATEMENTS.table, STATEMENT_LINES.table, CHECKPOINTS.table

Found = Row[Any]


class Wanted(NamedTuple):
    """Which entries to list, by whole days (UTC); `before` is where the previous page ended.

    Entries are ordered, newest first, by position, or within an organization by sequence.
    """

    organization_id: UUID | None = None
    kind: str | None = None
    since: date | None = None
    until: date | None = None  # Inclusive.
    reference: str | None = None
    before: int | None = None


class Figures:
    """Reads the views; no read gets slower as the number of entries grows."""

    def __init__(self, database: Database) -> None:
        self.database = database

    def _all(self, statement: Select[*tuple[Any, ...]]) -> list[Found]:
        return [*self.database.all(statement)]

    def _one(self, statement: Select[*tuple[Any, ...]]) -> Found | None:
        return next(iter(self._all(statement)), None)

    def require_views(self) -> None:
        """Raise the error of the database if a view is not there, or not as this release has it."""
        with self.database.reading() as connection:
            for view in (*OVER_READ_MODELS, *BESIDE_THE_LOG):
                connection.execute(select(view.table).limit(0))

    # Wallets.

    def wallets(self, name: str, offset: int, limit: int) -> list[Found]:
        """Return wallets whose organization has `name` in its name, ordered by that name."""
        statement = select(_WALLET).order_by(_WALLET.c.organization, _WALLET.c.organization_id)
        if name:
            part = func.lower(_WALLET.c.organization).contains(name.lower(), autoescape=True)
            statement = statement.where(part)
        return self._all(statement.offset(offset).limit(limit))

    def wallet(self, organization_id: UUID) -> Found | None:
        return self._one(select(_WALLET).where(_WALLET.c.organization_id == organization_id))

    def total_balance(self) -> tuple[int, int]:
        """Return what all wallets hold, and how many there are; 64 bits cannot hold every sum."""
        held = _WALLET.c.balance_micros
        columns: Any = func.sum(held // MICROS), func.sum(held % MICROS), func.count()
        [found] = self._all(select(*columns).select_from(_WALLET))
        units, micros, wallets = (int(each or 0) for each in found)
        return units * MICROS + micros, wallets

    def days(self, organization_id: UUID | None, since: date) -> list[Found]:
        """Return sums by day and kind from a day on; None: of all wallets."""
        view = TOTALS.table if organization_id is None else DAILY.table
        statement = select(view).where(view.c.day >= since).order_by(view.c.day)
        if organization_id is not None:
            statement = statement.where(view.c.organization_id == organization_id)
        return self._all(statement)

    # The stream.

    def entries(self, wanted: Wanted, limit: int) -> list[Found]:
        """Return entries, newest first; a reference is sought within an organization only."""
        assert wanted.organization_id is not None or wanted.reference is None
        order = _ENTRY.c.position if wanted.organization_id is None else _ENTRY.c.sequence
        conditions = [*self._conditions(wanted, order)]
        if wanted.organization_id is not None:
            statement = select(_ENTRY).where(*conditions).order_by(order.desc()).limit(limit)
            return self._all(statement)
        # An index orders each kind, so read the newest entries of each and keep the newest of all.
        kinds = KINDS if wanted.kind is None else (wanted.kind,)
        parts = [
            select(_ENTRY)
            .where(_ENTRY.c.kind == kind, *conditions)
            .order_by(order.desc())
            .limit(limit)
            .subquery()
            for kind in kinds
        ]
        found = union_all(*(select(part) for part in parts)).subquery()
        return self._all(select(found).order_by(found.c.position.desc()).limit(limit))

    def every_entry(self, wanted: Wanted) -> Iterator[Found]:
        """Yield all entries that are wanted, newest first, a few at a time."""
        while True:
            found = self.entries(wanted, DOWNLOAD_ROWS)
            yield from found
            if len(found) < DOWNLOAD_ROWS:
                return
            wanted = wanted._replace(before=cursor_of(wanted, found[-1]))

    def _conditions(
        self, wanted: Wanted, order: ColumnElement[int]
    ) -> Iterator[ColumnElement[bool]]:
        if wanted.organization_id is not None:
            yield _ENTRY.c.organization_id == wanted.organization_id
            if wanted.kind is not None:
                yield _ENTRY.c.kind == wanted.kind
        if wanted.reference is not None:
            yield _ENTRY.c.reference_id == wanted.reference
        if wanted.before is not None:
            yield order < wanted.before
        if wanted.since is not None or wanted.until is not None:
            yield order.between(*self._bounds(wanted))
        if wanted.since is not None:
            yield _ENTRY.c.charged_at_micros >= _midnight(wanted.since)
        if wanted.until is not None:
            yield _ENTRY.c.charged_at_micros < _midnight(wanted.until) + DAY_MICROS

    def _bounds(self, wanted: Wanted) -> tuple[int, int]:
        """Return the first and last place that an entry of these days can have."""
        view, first, last = TOTALS.table, "first_position", "last_position"
        if wanted.organization_id is not None:
            view, first, last = DAILY.table, "first_sequence", "last_sequence"
        statement: Select[*tuple[Any, ...]] = select(
            func.min(view.c[first]).label("first"), func.max(view.c[last]).label("last")
        )
        if wanted.organization_id is not None:
            statement = statement.where(view.c.organization_id == wanted.organization_id)
        if wanted.kind is not None:
            statement = statement.where(view.c.kind == wanted.kind)
        if wanted.since is not None:
            statement = statement.where(view.c.day >= wanted.since)
        if wanted.until is not None:
            statement = statement.where(view.c.day <= wanted.until)
        (found,) = self._all(statement)
        return (0, -1) if found.first is None else (found.first, found.last)

    # Statements.

    def statements(self, month: str, offset: int, limit: int) -> list[Found]:
        """Return the statements of a month by the name of their organization."""
        statement = select(_STATEMENT).where(_STATEMENT.c.month == month)
        statement = statement.order_by(_STATEMENT.c.organization, _STATEMENT.c.organization_id)
        return self._all(statement.offset(offset).limit(limit))

    def every_statement(self, month: str) -> Iterator[Found]:
        for offset in count(0, DOWNLOAD_ROWS):
            found = self.statements(month, offset, DOWNLOAD_ROWS)
            yield from found
            if len(found) < DOWNLOAD_ROWS:
                return

    def statement(self, organization_id: UUID, month: str) -> Found | None:
        """Return the statement of a month, or the newest one before it; None before the first."""
        own = _STATEMENT.c.organization_id == organization_id
        statement = select(_STATEMENT).where(own, _STATEMENT.c.month <= month)
        return self._one(statement.order_by(_STATEMENT.c.month.desc()).limit(1))

    def statements_of(self, organization_id: UUID, limit: int) -> list[Found]:
        own = _STATEMENT.c.organization_id == organization_id
        statement = select(_STATEMENT).where(own).order_by(_STATEMENT.c.month.desc())
        return self._all(statement.limit(limit))

    def lines(self, organization_id: UUID, month: str) -> list[Found]:
        own = _LINE.c.organization_id == organization_id
        return self._all(select(_LINE).where(own, _LINE.c.month == month).order_by(_LINE.c.kind))

    # What others can check.

    def newest_event(self) -> Found | None:
        return self._one(select(_EVENT).order_by(_EVENT.c.position.desc()).limit(1))

    def checkpoints(self, limit: int) -> list[Found]:
        """Return the newest checkpoints, newest first."""
        return self._all(select(_CHECKPOINT).order_by(_CHECKPOINT.c.number.desc()).limit(limit))

    def checkpoint(self, number: int) -> Found | None:
        return self._one(select(_CHECKPOINT).where(_CHECKPOINT.c.number == number))

    def delivered(self) -> Found | None:
        """Return the newest checkpoint that has reached its place outside."""
        accepted = select(_CHECKPOINT).where(_CHECKPOINT.c.delivered_at.is_not(None))
        return self._one(accepted.order_by(_CHECKPOINT.c.number.desc()).limit(1))

    def checkpoint_covering(self, position: int) -> Found | None:
        """Return the first checkpoint that vouches for a position; None if it was changed."""
        found = self._one(covering(_CHECKPOINT, position))
        with suppress(ChangedCheckpoint):  # The audit reports it.
            if found is not None:
                signed_in(found)
                return found
        return None

    def audit(self) -> Found | None:
        return self._one(select(AUDITS.table).order_by(AUDITS.table.c.at.desc()).limit(1))

    # What was earned.

    def costs(self, since: date) -> list[Found]:
        """Return what providers charge for their work since a day, by provider and kind of work.

        The log is read from the first position that a transaction of these days can have.
        """
        totals, work = TOTALS.table.c, COSTS.table.c
        before = select(func.coalesce(func.max(totals.last_position), 0)).where(totals.day < since)
        first = select(func.min(totals.first_position)).where(totals.day >= since)
        with self.database.reading() as connection:
            behind = connection.execute(before).scalar_one()
            start = connection.execute(first).scalar_one()
        unknown = case((work.cost_micros.is_(None), work.count), else_=0)
        groups = work.provider, work.work, work.currency, work.estimated
        statement: Select[*tuple[Any, ...]] = select(
            *groups,
            cast(func.sum(work.count), BigInteger).label("times"),
            cast(func.sum(unknown), BigInteger).label("unknown"),
            cast(func.coalesce(func.sum(work.cost_micros), 0), BigInteger).label("cost_micros"),
        )
        statement = statement.where(
            work.position > min(behind, (start or behind + 1) - 1), work.at >= _moment(since)
        )
        return self._all(statement.group_by(*groups).order_by(*groups))

    # One entry's story.

    def entry(self, transaction_id: UUID) -> Found | None:
        return self._one(select(_ENTRY).where(_ENTRY.c.id == transaction_id))

    def for_the_same(self, entry: Found) -> list[Found]:
        """Return the entries with the organization and reference of this one, oldest first."""
        statement = select(_ENTRY).where(
            _ENTRY.c.organization_id == entry.organization_id,
            _ENTRY.c.reference_id == entry.reference_id,
        )
        return self._all(statement.order_by(_ENTRY.c.sequence).limit(SAME_MAX))

    def owner_of(self, stream: UUID) -> UUID | None:
        """Return the organization of a stream, as one of its events says."""
        found = self._one(select(_EVENT).where(_EVENT.c.stream == stream).limit(1))
        return None if found is None else found.organization_id

    def events(self, entry: Found) -> list[Found]:
        """Return the events of the stream that an entry refers to, and those decided with it.

        What an operator has proposed comes with it, so that both names are there. Callers choose
        request ids and may repeat them, so the times must be equal as well.
        """
        near = _EVENT.c.position.between(entry.position - NEAR, entry.position + NEAR)
        around = self._all(select(_EVENT).where(near))
        own = {(e.request_id, e.at) for e in around if e.position == entry.position}
        found = {e.position: e for e in around if (e.request_id, e.at) in own}
        streams = {e.stream for e in found.values() if e.topic.startswith(PROPOSED)}
        for stream in {*streams, as_id(entry.reference_id)} - {None}:
            of_it = select(_EVENT).where(_EVENT.c.stream == stream).limit(EVENTS_MAX)
            found |= {each.position: each for each in self._all(of_it)}
        return [found[position] for position in sorted(found)]

    def operators(self, events: Sequence[Found]) -> dict[str, str]:
        """Return the names of the operators who caused these events, each by its actor."""
        actors = {e.actor for e in events if is_operator(e.actor)}
        streams = {as_id(each.removeprefix(OPERATOR)) for each in actors} - {None}
        first = select(_EVENT).where(_EVENT.c.stream.in_(streams), _EVENT.c.version == 1)
        found = self._all(first) if streams else []
        return {f"{OPERATOR}{each.stream}": each.operator for each in found if each.operator}


def cursor_of(wanted: Wanted, entry: Found) -> int:
    return int(entry.position if wanted.organization_id is None else entry.sequence)


def as_id(text: str) -> UUID | None:
    with suppress(ValueError):
        return UUID(text)
    return None


def by_day(rows: Sequence[Found], today: date) -> list[tuple[date, Found]]:
    """Return sums with the day on which they count: what is dated ahead counts today."""
    return [(min(each.day, today), each) for each in rows]


def balances(
    days: Sequence[tuple[date, Found]], now_micros: int, since: date, today: date
) -> list[int]:
    """Return what was held at the end of each day, from what is held now and the sums since."""
    net = Counter[date]()
    for day, each in days:
        net[day] += each.net_micros
    balance, found = now_micros, list[int]()
    for back in range((today - since).days + 1):
        found.append(balance)
        balance -= net[today - timedelta(days=back)]
    return found[::-1]


def _moment(day: date) -> datetime:
    return datetime(day.year, day.month, day.day, tzinfo=UTC)


def _midnight(day: date) -> int:
    return to_micros(_moment(day))
