"""Verify finds every row that the log does not justify, and every row that is missing."""

from collections.abc import Callable
from uuid import UUID, uuid4

import pytest
from sqlalchemy import Connection, Table

from domain.accounts.organization import SCOPES
from projections.engine.verify import differences
from tests.installation import Process, on_sqlite
from tests.plan_files import import_plans, plan
from tests.projections.histories import DOWN
from tests.projections.looking import place_of, register

CHANGES: dict[str, dict[str, object]] = {
    "organizations": {"status": "suspended"},
    "api_clients": {"scopes": str(SCOPES[:1])},
    "wallets": {"balance_micros": 1},
    "transactions": {"description": "Something else"},
    "jobs": {"failed_count": 2},
    "job_settlements": {"indexes": "[7]"},
    "plans": {"enabled": False},
    "plan_countries": {"country_code": "FR"},
    "plan_sponsor_profiles": {"name": "Somebody else"},
    "plan_exclusions": {"organization_id": UUID(int=0)},
}
Damage = Callable[[Connection, Table], object]


def change(connection: Connection, table: Table) -> object:
    return connection.execute(table.update().values(CHANGES[table.name]))


def lose(connection: Connection, table: Table) -> object:
    first, *_ = table.primary_key.columns
    smallest = connection.execute(table.select().order_by(first)).first()
    return connection.execute(table.delete().where(first == smallest._mapping[first]))  # noqa: SLF001  # SQLAlchemy's documented access.


def add(connection: Connection, table: Table) -> object:
    row = connection.execute(table.select()).first()
    twin = dict(row._mapping)  # noqa: SLF001  # SQLAlchemy's documented access.
    for key in [*table.primary_key.columns.keys(), "sequence"]:
        if key in twin:
            value = twin[key]
            twin[key] = uuid4() if isinstance(value, UUID) else f"{value}9"
    return connection.execute(table.insert().values(twin))


@pytest.fixture
def full(process: Process) -> Process:
    """A process whose read models have rows in every table."""
    organization_id = process.organization("1.00")
    process.client(organization_id)
    process.look_up(organization_id)
    process.finish_job(process.create_job(organization_id, ["+14155550100", DOWN]))
    import_plans(process, plan(excluded_organizations=[str(organization_id)]))
    process.projector.catch_up()
    return process


def found(process: Process) -> list[str]:
    report = process.audit()
    return [failure.reason for failure in report.failures]


@pytest.mark.each_database
@pytest.mark.parametrize("damage", [on_sqlite(change), lose, on_sqlite(add)])
def test_a_damaged_row_is_found_in_every_table(full: Process, damage: Damage) -> None:
    by_name = {each.name: each for model in full.models for each in model.tables}
    with full.views.writing() as connection:
        for name in CHANGES:
            damage(connection, by_name[name])
    named = [
        reason.partition(": table ")[2].partition(" differs at key ")[0]
        for model in full.models
        for reason in differences(full.source, model)
    ]
    assert {*named} == {*CHANGES}


def test_a_lost_row_is_named_by_its_own_key(full: Process) -> None:
    keys = sorted([*register(full, 3)], key=str)
    full.projector.catch_up()
    with full.views.writing() as connection:
        columns = full.organizations.rows.c
        connection.execute(full.organizations.rows.delete().where(columns.id == keys[1]))
    assert found(full) == [
        f"read model organizations: table organizations differs at key {keys[1]}"
    ]


def test_a_model_that_was_never_built_or_has_stopped_is_a_failure(full: Process) -> None:
    with full.views.writing() as connection:
        full.positions.fail(connection, [place_of(full, "jobs")], "a bug", full.clock())
        connection.execute(
            full.positions.rows.delete().where(full.positions.rows.c.name == "wallets")
        )
    assert found(full) == ["read model wallets was never built", "read model jobs stopped: a bug"]
