"""Webhook deliveries of thirty days; losing them causes repeats, which have the same ids.

They are in the database of the read models, so that the planner can write deliveries and its
position in one commit.
"""

from collections.abc import Sequence
from datetime import datetime, timedelta
from operator import itemgetter
from typing import Any, NamedTuple
from uuid import UUID

from sqlalchemy import (
    BigInteger,
    Column,
    ColumnElement,
    Connection,
    Index,
    Integer,
    MetaData,
    ScalarSelect,
    Select,
    Table,
    Uuid,
    and_,
    bindparam,
    case,
    exists,
    func,
    literal_column,
    or_,
    select,
    union_all,
)

from domain.cause import AHEAD_MAX, lies_ahead
from domain.ids import as_id
from domain.webhooks.deliveries import DELAYS, Delivery, Health, Sums
from projections.engine.database import Database, from_micros, to_micros
from projections.engine.hot_reads import HotStatement, OneOf
from projections.engine.in_parts import change_in_parts, in_order
from projections.engine.inserting import insert_new
from projections.engine.shape import Stored

# An attempt takes ten seconds at most; after this time that of a killed worker is repeated.
LEASE = timedelta(seconds=30)
ROWS_MAX = 500  # Per statement, because PostgreSQL accepts at most 65,535 values.
UNDELIVERED = ("failed", "cancelled")
_SMALL = ("attempts", "retries", "response_status", "duration_ms")
STORED = Stored(Delivery, **dict.fromkeys(_SMALL, Integer))


class Claimed(NamedTuple):
    """A delivery in hand until a moment; `has_more`: the endpoint has another one to take."""

    delivery: Delivery
    until: datetime
    health: Health
    has_more: bool


class Deliveries:
    """A row per delivery, and a row per endpoint about its recent failures."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self.metadata = MetaData()
        own = (*STORED.columns("id"), Column("taken_until", BigInteger))
        self._rows = Table("webhook_deliveries", self.metadata, *own)
        self._states = Table(
            "webhook_health",
            self.metadata,
            Column("endpoint_id", Uuid, primary_key=True),
            Column("organization_id", Uuid, nullable=False),
            Column("failures", Integer, nullable=False),
            Column("failing_since", BigInteger),
            Column("paused_until", BigInteger),
        )
        columns = self._rows.c
        self._read = [columns[name] for name in STORED.names]
        # In the full sort order of `take`, so that a long backlog is not sorted for each choice.
        order = (columns.next_attempt_at, columns.position)
        self._index("due", *order, of=_is(columns.status, "pending"))
        first = and_(_is(columns.status, "pending"), _is(columns.attempts, 0))
        self._index("first", columns.about, columns.position, of=first)
        self._index("taken", columns.taken_until, of=columns.taken_until.is_not(None))
        # With the organization, so that counting many deliveries reads no rows.
        self._index("newest", columns.organization_id, columns.created_at, columns.id)
        for status in UNDELIVERED:
            mine = (columns.organization_id, columns.created_at, columns.id)
            self._index(status, *mine, of=_is(columns.status, status))
        Index("webhook_deliveries_by_age", columns.created_at)
        self._next = self._next_statement()
        self._due = HotStatement(self._due_statement())

    def _index(
        self, name: str, *columns: Column[Any], of: ColumnElement[bool] | None = None
    ) -> None:
        """Index rows of an endpoint, perhaps only some of them."""
        part: dict[str, Any] = {} if of is None else {"postgresql_where": of, "sqlite_where": of}
        Index(f"webhook_deliveries_{name}", self._rows.c.endpoint_id, *columns, **part)

    # What the planner writes, in its own transaction.

    def plan(self, connection: Connection, planned: Sequence[Delivery]) -> None:
        """Add deliveries; a known delivery stays as it is."""
        rows = [*map(STORED.row, planned)]
        for start in range(0, len(rows), ROWS_MAX):
            insert_new(connection, self._rows, rows[start : start + ROWS_MAX])
        owners = {each.endpoint_id: each.organization_id for each in planned}
        states = [
            {"endpoint_id": each, "organization_id": owner, "failures": 0}
            for each, owner in owners.items()
        ]
        insert_new(connection, self._states, states)

    def reopen(
        self, connection: Connection, ids: Sequence[UUID], endpoint_id: UUID, now: datetime
    ) -> None:
        """Let deliveries be made again at once with fresh retries, also of those in hand."""
        columns = self._rows.c
        these = and_(OneOf(columns.id, "ids"), columns.endpoint_id == endpoint_id)
        values = {"status": "pending", "retries": 0, "next_attempt_at": to_micros(now)}
        change = self._rows.update().where(in_order(self._rows, these))
        connection.execute(change.values(**values, taken_until=None), {"ids": [*ids]})

    # What workers do.

    def claim(self, endpoint_id: UUID, now: datetime, slots: int) -> Claimed | None:
        """Take the next delivery, unless `slots` are in hand or the endpoint is paused."""
        states, micros = self._states, to_micros(now)
        whose = states.c.endpoint_id == endpoint_id
        with self._database.writing() as connection:
            # The lock lets one worker at a time choose among the deliveries of an endpoint.
            state = connection.execute(select(states).where(whose).with_for_update()).first()
            paused_until = state and state.paused_until
            if state is None or (paused_until and lies_ahead(from_micros(paused_until), now)):
                return None
            in_hand, repeats = self._in_hand(connection, endpoint_id, now)
            if in_hand >= slots:
                return None
            values = {
                "endpoint": endpoint_id,
                "now": micros,
                "latest": to_micros(now + AHEAD_MAX),
                "repeats": int(repeats < max(1, slots // 2)),
            }
            found = connection.execute(self._next, values).all()
            if not found:
                return None
            until = to_micros(now + LEASE)
            this = self._rows.update().where(self._rows.c.id == found[0].id)
            connection.execute(this.values(taken_until=until))
        since = state.failing_since
        health = Health(state.failures, from_micros(since))
        return Claimed(STORED.read(found[0]), from_micros(until), health, has_more=len(found) > 1)

    def _in_hand(self, connection: Connection, endpoint_id: UUID, now: datetime) -> Sequence[int]:
        columns = self._rows.c
        claimed = and_(
            columns.endpoint_id == endpoint_id,
            columns.taken_until > to_micros(now),
            columns.taken_until <= to_micros(now + AHEAD_MAX),
        )
        repeats = func.count().filter(columns.attempts > 0)
        return connection.execute(select(func.count(), repeats).where(claimed)).one()

    def _next_statement(self) -> Select[Any]:
        """Select what may be taken; first attempts about the same thing keep their order."""
        columns, before = self._rows.c, self._rows.alias("before")
        is_behind = exists().where(
            before.c.endpoint_id == columns.endpoint_id,
            before.c.about == columns.about,
            before.c.position < columns.position,
            _is(before.c.status, "pending"),
            _is(before.c.attempts, 0),
        )
        is_free = or_(
            columns.taken_until.is_(None),
            columns.taken_until <= bindparam("now"),
            columns.taken_until > bindparam("latest"),
        )
        is_repeat = and_(columns.attempts > 0, bindparam("repeats", type_=Integer) == 1)
        return (
            select(*self._read)
            .where(
                columns.endpoint_id == bindparam("endpoint", type_=Uuid()),
                _is(columns.status, "pending"),
                columns.next_attempt_at <= bindparam("now"),
                is_free,
                or_(is_repeat, and_(_is(columns.attempts, 0), ~is_behind)),
            )
            .order_by(columns.next_attempt_at, columns.position)
            .limit(2)
        )

    def settle(self, claim: Claimed, delivery: Delivery, health: Health, now: datetime) -> bool:
        """Store the outcome of an attempt; False if another worker has taken it over."""
        columns, states = self._rows.c, self._states
        mine = and_(columns.id == delivery.id, columns.taken_until == to_micros(claim.until))
        with self._database.writing() as connection:
            update = (
                self._rows.update().where(mine).values(**STORED.row(delivery), taken_until=None)
            )
            if not connection.execute(update).rowcount:
                return False
            if health != claim.health:
                pause = health.pause()
                change = {
                    "failures": health.failures,
                    "failing_since": health.failing_since and to_micros(health.failing_since),
                    "paused_until": None if pause is None else to_micros(now + pause),
                }
                this = states.c.endpoint_id == delivery.endpoint_id
                if health.failures:  # Another attempt's outcome meanwhile must not be overwritten.
                    this = and_(this, states.c.failures == claim.health.failures)
                connection.execute(states.update().where(this).values(change))
        return True

    def wait(self, claim: Claimed, error: str, until: datetime) -> None:
        """Leave the delivery as it was, with the reason, and pause its endpoint."""
        columns, states, delivery = self._rows.c, self._states, claim.delivery
        mine = and_(columns.id == delivery.id, columns.taken_until == to_micros(claim.until))
        this = states.c.endpoint_id == delivery.endpoint_id
        with self._database.writing() as connection:
            waits = self._rows.update().where(mine).values(error=error, taken_until=None)
            connection.execute(waits)
            connection.execute(states.update().where(this).values(paused_until=to_micros(until)))

    def failing_since(self, endpoint_id: UUID) -> datetime | None:
        """Return when the present series of failures of an endpoint began."""
        states = self._states.c
        statement = select(states.failing_since).where(states.endpoint_id == endpoint_id)
        found = self._database.all(statement)
        return from_micros(found[0].failing_since) if found else None

    def cancel(self, endpoint_id: UUID, now: datetime) -> int:
        """Cancel the pending deliveries of an endpoint that was disabled or deleted."""
        columns = self._rows.c
        waits = and_(
            columns.endpoint_id == endpoint_id,
            _is(columns.status, "pending"),
            columns.created_at <= to_micros(now),
        )
        values = {"status": "cancelled", "next_attempt_at": None, "taken_until": None}
        change = self._rows.update().where(in_order(self._rows, waits))
        return self._database.change(change.values(values))

    def due(self, now: datetime) -> list[tuple[UUID, UUID]]:
        """Return organization and id of each endpoint with something due, longest overdue first."""
        values = {"now": to_micros(now), "latest": to_micros(now + AHEAD_MAX)}
        found = self._database.rows(self._due, **values)
        late = [each for each in found if each[2] is not None and each[2] <= values["now"]]
        late.sort(key=itemgetter(2))
        return [(as_id(owner), as_id(endpoint)) for owner, endpoint, _ in late]

    def _due_statement(self) -> Select[Any]:
        """Select each endpoint that is not paused, with its earliest attempt (an index probe)."""
        states = self._states.c
        paused = states.paused_until
        is_open = or_(paused.is_(None), paused <= bindparam("now"), paused > bindparam("latest"))
        due = self._earliest().label("due")
        return select(states.organization_id, states.endpoint_id, due).where(is_open)

    def _earliest(self) -> ScalarSelect[Any]:
        columns = self._rows.c
        return (
            select(columns.next_attempt_at)
            .where(columns.endpoint_id == self._states.c.endpoint_id)
            .where(_is(columns.status, "pending"))
            .order_by(columns.next_attempt_at)
            .limit(1)
            .scalar_subquery()
        )

    def put_right(self, now: datetime) -> None:
        """Let nothing wait longer than its pause, whatever clock has planned it.

        Only what lies ahead is read, along the index, but that may be all retries of a day. So call
        this when a clock may have been set back, not at each tick.
        """
        rows, states = self._rows.c, self._states.c
        pauses = dict(enumerate((timedelta(0), *DELAYS)))
        latest = case({n: to_micros(now + each) for n, each in pauses.items()}, value=rows.retries)
        ahead = and_(_is(rows.status, "pending"), rows.next_attempt_at > to_micros(now))
        some = exists().where(rows.endpoint_id == states.endpoint_id, ahead)
        found = self._database.all(select(states.endpoint_id).where(some))
        change, late = self._rows.update().values(next_attempt_at=latest), rows.next_attempt_at
        for (each,) in found:
            here = and_(rows.endpoint_id == each, ahead)
            change_in_parts(self._database, change, late > latest, late, here)

    def release(self) -> None:
        """Release all leases. Call this only while no other process runs."""
        leased = in_order(self._rows, self._rows.c.taken_until.is_not(None))
        self._database.change(self._rows.update().where(leased).values(taken_until=None))

    def forget(self, before: datetime, parts_max: int | None = None) -> int:
        """Delete deliveries that are older than a moment, whatever their status."""
        columns, states = self._rows.c, self._states
        old = columns.created_at < to_micros(before)
        gone = change_in_parts(
            self._database, self._rows.delete(), old, columns.created_at, old, parts_max
        )
        if gone:
            unused = ~exists().where(columns.endpoint_id == states.c.endpoint_id)
            self._database.change(states.delete().where(in_order(states, unused)))
        return gone

    # What organizations and operators read.

    def page(
        self, organization_id: UUID, endpoint_id: UUID, status: str | None, part: slice
    ) -> tuple[list[Delivery], int]:
        """Return a part of an endpoint's deliveries, newest first, and how many there are."""
        columns = self._rows.c
        whose = and_(columns.endpoint_id == endpoint_id, columns.organization_id == organization_id)
        if status is not None:
            whose = and_(whose, columns.status == status)
        newest = select(*self._read).where(whose)
        newest = newest.order_by(columns.created_at.desc(), columns.id.desc())
        count = select(func.count()).select_from(self._rows).where(whose)
        with self._database.reading() as connection:
            total = connection.execute(count).scalar_one()
            found = connection.execute(newest.slice(part.start, part.stop)).all()
        return [*map(STORED.read, found)], total

    def get(self, organization_id: UUID, endpoint_id: UUID, delivery_id: UUID) -> Delivery | None:
        columns = self._rows.c
        this = and_(
            columns.id == delivery_id,
            columns.endpoint_id == endpoint_id,
            columns.organization_id == organization_id,
        )
        found = self._database.all(select(*self._read).where(this))
        return STORED.read(found[0]) if found else None

    def undelivered(
        self,
        organization_id: UUID,
        endpoint_id: UUID,
        since: datetime | None = None,
        limit: int | None = None,
    ) -> Sequence[UUID]:
        """Return what has failed or was cancelled of what was planned since, oldest first."""
        columns = self._rows.c
        whose = and_(columns.endpoint_id == endpoint_id, columns.organization_id == organization_id)
        if since is not None:
            whose = and_(whose, columns.created_at >= to_micros(since))
        each = select(columns.id, columns.position).where(whose)
        # Each by its own index, so that what was delivered is not read.
        both = union_all(*(each.where(_is(columns.status, it)) for it in UNDELIVERED)).subquery()
        ids = select(both.c.id).order_by(both.c.position).limit(limit)
        return [delivery_id for (delivery_id,) in self._database.all(ids)]

    def sums(self) -> dict[UUID, Sums]:
        """Count by endpoint. Only for operators, because it reads all rows."""
        rows, states = self._rows.c, self._states.c
        counts = (func.count().filter(rows.status == each) for each in ("pending", "failed"))
        facts = (states.endpoint_id, *counts, states.failures, states.failing_since)
        each_one = self._states.outerjoin(self._rows, rows.endpoint_id == states.endpoint_id)
        sums = select(*facts).select_from(each_one).group_by(states.endpoint_id)
        return {
            each[0]: Sums(each[1], each[2], each[3], from_micros(each[4]))
            for each in self._database.all(sums)
        }

    def backlog(self) -> tuple[int, datetime | None]:
        """Return the number of pending deliveries, and the oldest due time at a sound endpoint.

        A delivery to an endpoint that fails is late because of the endpoint, not because of us.
        """
        rows, states = self._rows.c, self._states.c
        waits = _is(rows.status, "pending")
        count = select(func.count()).select_from(self._rows).where(waits)
        oldest = select(func.min(self._earliest())).where(states.failures == 0)
        with self._database.reading() as connection:
            pending = connection.execute(count).scalar_one()
            since = connection.execute(oldest).scalar_one()
        return pending, from_micros(since)


def _is(column: ColumnElement[Any], value: str | int) -> ColumnElement[bool]:
    """Compare with a value that stands in the statement, as partial indexes need.

    PostgreSQL keeps one plan for all values of a parameter, and no partial index serves all. A plan
    that was kept while there were few deliveries took 14 s to choose among 3,000.
    """
    return column == literal_column(repr(value), column.type)
