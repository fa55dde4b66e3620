"""The SQL views show the same figures on both databases and outlive the rebuild of tables."""

import re
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest
from sqlalchemy import Row, select

from app.processes.migrate import migrate
from projections.engine.rebuild import rebuild_all
from projections.engine.sql_views import SqlView
from projections.finance.views import (
    DAILY,
    EVENTS,
    OVER_READ_MODELS,
    TOTALS,
    TRANSACTIONS,
    VIEWS,
    WALLETS,
)
from projections.models.wallets import Wallets
from tests.installation import Process, SetClock, postgresql_only
from tests.projections.histories import DOWN
from tests.tidy.source import ROOT

pytestmark = pytest.mark.each_database


@pytest.fixture
def acme(process: Process) -> UUID:
    """Two days: a deposit and a lookup; then a job whose second number fails, and a correction."""
    clock = process.clock = SetClock(datetime(2026, 3, 1, 23, 30, 0, 250, tzinfo=UTC))
    made = process.organization("1.00")
    process.organization("5.00", "Other")
    process.look_up(made)
    clock.forward(hours=1)
    process.finish_job(process.create_job(made, ["+14155550109", DOWN]))
    process.accounts.move(
        "adjustment", made, -250_000, "c-1", process.cause(), reason="a correction"
    )
    process.projector.catch_up()
    return made


def rows(process: Process, view: SqlView, **wanted: Any) -> list[Row[Any]]:
    statement = select(view.table).filter_by(**wanted)
    with process.views.reading() as connection:
        return [*connection.execute(statement)]


def test_the_sums_of_all_add_up_to_what_all_wallets_hold(process: Process, acme: UUID) -> None:
    totals = rows(process, TOTALS)
    first = next(each for each in totals if each.kind == "deposit")
    assert (first.day, first.transactions, first.net) == (date(2026, 3, 1), 2, Decimal(6))
    held = sum(wallet.balance_micros for wallet in rows(process, WALLETS))
    assert sum(each.credit_micros - each.debit_micros for each in totals) == held
    positions = {each.position for each in rows(process, TRANSACTIONS, kind="deposit")}
    assert (first.first_position, first.last_position) == (min(positions), max(positions))
    assert {each.organization_id for each in rows(process, DAILY)} > {acme}
    assert UUID(int=0) not in {each.organization_id for each in rows(process, DAILY)}


@postgresql_only("on SQLite the log is another file, which only a session of ours reads beside")
def test_events_are_shown_without_what_they_hold(process: Process, acme: UUID) -> None:
    (entry,) = rows(process, TRANSACTIONS, organization_id=acme, kind="refund")
    (event,) = rows(process, EVENTS, position=entry.position)
    assert (event.topic, event.organization_id) == ("wallet.refunded", acme)
    assert (event.at, event.request_id) == (entry.charged_at, process.cause().request_id)


def test_a_rebuild_leaves_the_views_as_they_were(process: Process, acme: UUID) -> None:
    views = OVER_READ_MODELS
    before = [sorted(rows(process, view), key=str) for view in views]
    assert all(before)
    for _ in range(2):
        rebuild_all(process.source, process.models)
        assert [sorted(rows(process, view), key=str) for view in views] == before
    process.look_up(acme)
    process.projector.catch_up()
    assert rows(process, WALLETS, organization_id=acme)[0].transactions == 6


@postgresql_only("SQLite has no roles")
def test_whoever_may_read_a_view_may_do_so_after_a_rebuild(process: Process) -> None:
    process.organization()
    _run(process, "GRANT SELECT ON finance_wallets TO pg_monitor")
    rebuild_all(process.source, [process.wallets, process.organizations])
    may = "SELECT has_table_privilege('pg_monitor', 'finance_wallets', 'SELECT')"
    assert _run(process, may)
    assert not _run(process, "SELECT has_table_privilege('pg_monitor', 'wallets', 'SELECT')")


@postgresql_only("SQLite has no comments")
def test_migrate_defines_only_views_that_have_changed(process: Process) -> None:
    numbers = "SELECT array_agg(xmin::text ORDER BY oid) FROM pg_rewrite WHERE ev_class IN "
    numbers += "(SELECT oid FROM pg_class WHERE relname LIKE 'finance_%')"
    before = _run(process, numbers)
    migrate(process)
    assert _run(process, numbers) == before
    _run(process, "COMMENT ON VIEW finance_wallets IS 'of an earlier release'")
    migrate(process)
    assert _run(process, numbers) != before


def test_a_view_that_does_not_fit_the_new_tables_waits_for_migrate(
    process: Process, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As in an upgrade: the views of the earlier release read a column that is there no more."""
    process.organization("1.00")
    process.projector.catch_up()
    if process.views.engine.dialect.name == "sqlite":
        _run(process, "DROP VIEW finance_wallets")
        _run(process, "CREATE VIEW finance_wallets AS SELECT gone FROM wallets")
    else:
        _run(process, "ALTER TABLE wallets ADD COLUMN gone bigint")
        _run(
            process,
            f"CREATE OR REPLACE VIEW finance_wallets AS {WALLETS.bodies['postgresql']}"
            " WHERE w.gone IS NULL",
        )
    monkeypatch.setattr(Wallets, "version", 99)
    assert migrate(process) == ["wallets"]
    assert [each.balance_micros for each in rows(process, WALLETS)] == [1_000_000]


def _run(process: Process, statement: str) -> Any:
    with process.views.writing() as connection:
        found = connection.execution_options(no_parameters=True).exec_driver_sql(statement)
        return found.scalar() if found.returns_rows else None


def test_the_guide_lists_every_view_with_its_columns_but_those_of_micro_units() -> None:
    guide = (ROOT / "docs" / "finance.md").read_text("utf-8")
    told = {
        names[0]: names[1:]
        for line in guide.splitlines()
        if line.startswith("| `finance_") and (names := re.findall(r"`(\w+)`", line))
    }
    assert told == {
        view.name: [each for each in view.columns if not each.endswith("_micros")]
        for view in VIEWS["postgresql"]
    }
    granted = guide.partition("GRANT SELECT ON ")[2].partition(" TO ")[0]
    assert re.split(r",\s+", granted) == [*told]
