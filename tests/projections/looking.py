"""What tests look at in the database of read models, and projectors that can be interrupted."""

from collections.abc import Callable, Sequence
from typing import Any, TypeVar
from uuid import UUID, uuid4

import pytest
from sqlalchemy import Connection, event, inspect
from sqlalchemy.exc import OperationalError

from domain.accounts.organization import Organization
from domain.links.link import Link
from domain.log.aggregate import Event
from domain.log.log import Log, Recorded, Stretch
from projections.engine.positions import Lag, Position, lags
from projections.engine.projector import Projector
from projections.engine.read_model import ReadModel
from projections.models.links import LinkFilter, LinkRow
from projections.models.wallets import Wallets
from projections.timeline import TimelineEntry, timeline_of
from tests.installation import Process

T = TypeVar("T")
Rows = dict[str, list[tuple[object, ...]]]
ALL = LinkFilter()


def place_of(process: Process, name: str) -> Position:
    return process.read(process.positions.get, name)


def places(process: Process) -> dict[str, int]:
    return {n: each.position for n, each in process.positions.all(process.views).items()}


def failures(process: Process) -> dict[str, str]:
    """Return why followers have stopped, as operators see it."""
    return {lag.name: lag.failure for lag in all_lags(process) if lag.failure}


def all_lags(process: Process) -> list[Lag]:
    return lags(process.source)


def rows(process: Process, models: Sequence[ReadModel] | None = None) -> Rows:
    """Return every row of every table of read models, each table in the order of its keys."""
    with process.views.snapshot() as connection:
        return {
            table.name: [
                tuple(row)
                for row in connection.execute(table.select().order_by(*table.primary_key.columns))
            ]
            for model in models or process.models
            for table in model.tables
        }


def tables(process: Process) -> set[str]:
    with process.views.reading() as connection:
        return set(inspect(connection).get_table_names())


def projector_of(process: Process, *models: ReadModel) -> Projector:
    return Projector(process.source._replace(clock=process.clock), models)


def timeline(process: Process, link_id: UUID) -> list[TimelineEntry]:
    entries = process.ask(process.transactions.about, link_id)
    return timeline_of(process.log, process.vault, process.log.get(Link, link_id), entries)


def link_page(
    process: Process, owner: UUID, wanted: LinkFilter = ALL, part: slice = slice(0, 99)
) -> tuple[list[LinkRow], int]:
    """Return a part of an organization's links as the log has them now, and how many match."""
    process.projector.catch_up()
    return process.links.page(process.views, owner, wanted, part)


def statements(process: Process, question: Callable[[], object]) -> list[tuple[str, Any]]:
    """Return what a question sends to the database, each with its values."""
    sent: list[tuple[str, Any]] = []

    def note(*arguments: Any) -> None:
        sent.append((arguments[2], arguments[3]))

    event.listen(process.views.engine, "before_cursor_execute", note)
    try:
        question()
    finally:
        event.remove(process.views.engine, "before_cursor_execute", note)
    return sent


def plan_of(process: Process, statement: str, values: Any) -> list[str]:
    """Return how SQLite finds what a statement asks for."""
    with process.views.reading() as connection:
        found = connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {statement}", tuple(values))
        return [str(line[-1]) for line in found]


def register(process: Process, count: int) -> list[UUID]:
    """Append so many organizations without wallets, in one transaction."""
    made = [Organization.register(uuid4(), process.cause(), name="Acme") for _ in range(count)]
    process.log.append(*made)
    return [each.id for each in made]


def after_reading(
    monkeypatch: pytest.MonkeyPatch, log: Log, meanwhile: Callable[[], object]
) -> None:
    """Let something happen once, between the next read of a log and what is done with it."""
    follow, pending = log.follow, [meanwhile]

    def interrupted(*args: Any) -> Stretch:
        stretch = follow(*args)
        if pending:
            pending.pop()()
        return stretch

    monkeypatch.setattr(log, "follow", interrupted)


class FragileWallets(Wallets):
    """The real read model, with a handler that raises at one position while it is broken."""

    uses = (Event,)  # So that it can stop anywhere.
    broken_at = 0

    def project(self, connection: Connection, batch: Sequence[Recorded]) -> None:
        super().project(connection, batch)
        if any(recorded.position == self.broken_at for recorded in batch):
            message = "a bug of this handler"
            raise RuntimeError(message)


def trouble_for(process: Process, monkeypatch: pytest.MonkeyPatch, times: int) -> None:
    """Let the database end the next transactions in a deadlock."""
    advance, left = process.positions.advance, [OperationalError("", {}, Exception())] * times

    def deadlocked(*args: Any) -> None:
        if left:
            raise left.pop()
        advance(*args)

    monkeypatch.setattr(process.positions, "advance", deadlocked)
    monkeypatch.setattr("projections.engine.consumer.CATCH_UP_PAUSES_S", (0.0, 0.0, 0.0))
