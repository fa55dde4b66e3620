"""A quick read finds what the ordinary way finds, and fails as that one fails."""

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier, Event
from uuid import UUID, uuid4

import pytest
from sqlalchemy import bindparam, column, select, table, text
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.exc import TimeoutError as PoolTimeout

from app.adapters.postgres.database import VIEWS_MAX
from domain.ids import as_id
from projections.engine.database import FREE_MIN, is_outage
from projections.engine.hot_reads import HotStatement, OneOf, run
from tests.installation import PATIENCE_S, Process, postgresql_only, sqlite_only

pytestmark = pytest.mark.each_database

ENDED = (  # It waits until they have: a server that only was asked to still answers for a moment.
    "SELECT pg_terminate_backend(pid, 20000) FROM pg_stat_activity"
    " WHERE datname = current_database()"
)
OTHERS = " AND pid <> pg_backend_pid() AND application_name LIKE 'carrier-links%'"
OPEN = (
    "SELECT pid FROM pg_stat_activity WHERE datname = current_database()"
    " AND application_name LIKE 'carrier-links%: views'"
)
CROWD = 16


@pytest.fixture
def by_id(process: Process) -> HotStatement:
    rows = process.organizations.rows.c
    return HotStatement(
        select(rows.name, rows.price_micros, rows.lookup_enabled).where(
            rows.id == bindparam("id"), rows.status == "active"
        )
    )


@pytest.fixture
def organization_id(process: Process) -> UUID:
    made = process.organization(name="Acme")
    process.projector.catch_up()
    return made


def test_it_finds_what_the_ordinary_way_finds(
    process: Process, by_id: HotStatement, organization_id: UUID
) -> None:
    with process.views.reading() as connection:
        expected = connection.execute(by_id.statement, {"id": organization_id}).all()
    found = process.views.rows(by_id, id=organization_id)
    assert [tuple(row) for row in found] == [tuple(row) for row in expected] == [("Acme", None, 1)]
    assert [*process.views.rows(by_id, id=uuid4())] == []


def test_it_finds_those_of_several_ids_inside_a_transaction_too(process: Process) -> None:
    rows = process.organizations.rows
    some = HotStatement(select(rows.c.id).where(OneOf(rows.c.id, "ids")))
    gone = HotStatement(rows.delete().where(OneOf(rows.c.id, "ids")))
    made = {process.organization(name=name) for name in ("One", "Two", "Three")}
    process.projector.catch_up()
    last, *others = made
    found = process.views.rows(some, ids=[*others, uuid4()])
    assert {as_id(each) for (each,) in found} == {*others}
    with process.views.writing() as connection:
        run(connection, gone, ids=others)
        assert [as_id(each) for (each,) in run(connection, some, ids=[*made])] == [last]
        ordinary = connection.execute(some.statement, {"ids": [*made]})
        assert [each for (each,) in ordinary] == [last]
    assert [as_id(each) for (each,) in process.views.rows(some, ids=[*made])] == [last]


def test_what_a_transaction_is_refused_is_raised_as_the_library_raises_it(process: Process) -> None:
    with pytest.raises(SQLAlchemyError), process.views.writing() as connection:
        run(connection, HotStatement(text("SELECT * FROM nothing")))


def test_it_sees_what_was_just_committed(process: Process, by_id: HotStatement) -> None:
    for name in ("One", "Two"):
        made = process.organization(name=name)
        process.projector.catch_up()
        assert process.views.rows(by_id, id=made)[0][0] == name


def test_a_statement_that_fails_raises_what_the_library_raises(process: Process) -> None:
    nothing = HotStatement(select(column("one")).select_from(table("nothing", column("one"))))
    for _ in range(2):
        with pytest.raises(SQLAlchemyError, match="nothing"):
            process.views.rows(nothing)


@sqlite_only("a thread reads on one connection there; on a server it would wait for a second one")
def test_a_read_inside_of_another_one_disturbs_neither(
    process: Process, by_id: HotStatement, organization_id: UUID
) -> None:
    with process.views.reading() as connection:
        result = connection.execute(text("SELECT 1 UNION ALL SELECT 2"))
        assert process.views.rows(by_id, id=organization_id)[0][0] == "Acme"
        assert result.scalars().all() == [1, 2]


@postgresql_only("a server that ends connections")
def test_a_connection_that_the_server_has_ended_costs_nobody_an_error(
    process: Process, by_id: HotStatement, organization_id: UUID
) -> None:
    for _ in range(3):
        assert len(process.views.rows(by_id, id=organization_id)) == 1
        with process.vault.database.reading() as other:
            assert other.execute(text(ENDED + OTHERS)).all()
        with process.views.reading() as connection:
            assert connection.execute(text("SELECT 1")).scalar_one() == 1


@postgresql_only("connections of a server")
def test_a_crowd_of_hot_and_ordinary_reads_shares_few_connections_which_stay(
    process: Process, by_id: HotStatement, organization_id: UUID
) -> None:
    together = Barrier(CROWD)

    def read(number: int) -> int:
        together.wait(PATIENCE_S)
        if number % 2:
            return len(process.views.rows(by_id, id=organization_id))
        with process.views.reading() as connection:
            return len(connection.execute(by_id.statement, {"id": organization_id}).all())

    def open_now() -> set[int]:
        with process.vault.database.reading() as other:
            return {*other.execute(text(OPEN)).scalars()}

    with ThreadPoolExecutor(CROWD) as pool:
        for _ in range(5):
            assert sum(pool.map(read, range(CROWD))) == CROWD
        opened = open_now()
        assert len(opened) <= VIEWS_MAX
        for _ in range(5):
            assert sum(pool.map(read, range(CROWD))) == CROWD
    now_open = open_now()
    assert opened <= now_open  # None was closed,
    assert len(now_open) <= VIEWS_MAX  # and no more than these are ever opened.


@postgresql_only("connections of a server")
def test_slow_reads_leave_connections_to_hot_ones_and_to_writes(
    process: Process, by_id: HotStatement, organization_id: UUID, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process.views, "_wait_s", 0.1)
    release, holding = Event(), list[Event]()

    def hold(begun: Event) -> None:
        with process.views.reading():
            begun.set()
            assert release.wait(PATIENCE_S)

    with ThreadPoolExecutor(CROWD) as pool:
        held = []
        for _ in range(VIEWS_MAX - FREE_MIN):
            holding.append(Event())
            held.append(pool.submit(hold, holding[-1]))
            assert holding[-1].wait(PATIENCE_S)
        with pytest.raises(PoolTimeout) as one_too_many, process.views.reading():
            pass
        assert is_outage(one_too_many.value)
        for _ in range(FREE_MIN):
            assert len(process.views.rows(by_id, id=organization_id)) == 1
        with process.views.writing() as connection:
            assert connection.execute(text("SELECT 1")).scalar_one() == 1
        release.set()
        for each in held:
            each.result()
    with process.views.reading() as connection:
        assert connection.execute(text("SELECT 1")).scalar_one() == 1
