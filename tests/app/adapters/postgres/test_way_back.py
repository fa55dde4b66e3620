"""The release before becomes this one, goes back by the page's statement, and forward again."""

import re

import psycopg
import pytest
from sqlalchemy import inspect, text

from app.processes.migrate import migrate
from projections.engine.rebuild import FORMER_MODELS
from projections.engine.sql_views import define, detached
from projections.finance.views import VIEWS
from tests.app.adapters.conftest import NewProcess
from tests.installation import Process
from tests.tidy.source import ROOT

# Recorded at the release before. Whoever makes the next one records this one, and goes on.
RECORDED = (ROOT / "tests/data/release_514c2a3.sql").read_text()
STATEMENTS = [each.strip() for each in re.split(r";\n", RECORDED) if each.strip()]
PAGE = (ROOT / "docs/deployment.md").read_text()
COLUMNS = (
    "SELECT attname FROM pg_attribute WHERE attrelid = %s::regclass AND attnum > 0 ORDER BY attnum"
)
TO_READ = "SELECT sum(amount), count(*) FROM finance_transactions"


@pytest.fixture
def process(new_process: NewProcess, database_url: str) -> Process:
    with psycopg.connect(database_url, autocommit=True) as connection:
        for each in STATEMENTS:
            connection.execute(each.encode())
    return new_process(database_url)


def starting(words: str) -> list[str]:
    return [each for each in STATEMENTS if each.startswith(words)]


def go_back(process: Process) -> None:
    """Do what `migrate` of the release before does: its tables, in place of ours, and its views."""
    known = dict(re.findall(r"follower_positions VALUES \('(\w+)', (\d+),", RECORDED))
    other = [each for each in process.models if known.get(each.name) != str(each.version)]
    tables = {table.name for model in other for table in model.tables}
    made = {re.search(r"public\.(\w+)", each)[1]: each for each in starting("CREATE TABLE")}  # type: ignore[index]  # Each names its table.
    with process.views.writing() as connection:
        kept = inspect(connection).get_table_names()
        old = [name for name in made if name in tables or name not in kept]
        versions = dict(connection.execute(text("SELECT name, version FROM schema_versions")).all())
        for name, version in re.findall(r"schema_versions VALUES \('(\w+)', (\d+)\)", RECORDED):
            assert versions.get(name, 0) <= int(version), f"{name}: it would refuse to touch these"
        with detached(connection, old):
            for name in old:
                connection.execute(text(f"DROP TABLE IF EXISTS {name}"))
                connection.exec_driver_sql(made[name])
        for each in starting("CREATE VIEW"):
            connection.exec_driver_sql(each.replace("CREATE VIEW", "CREATE OR REPLACE VIEW", 1))
        for each in starting("COMMENT ON VIEW"):
            connection.exec_driver_sql(each)
        for each in starting("INSERT INTO public.follower_positions"):
            changed = "ON CONFLICT (name) DO UPDATE SET version = excluded.version"
            connection.exec_driver_sql(f"{each} {changed}")


def columns_of(connection: psycopg.Connection, view: str) -> list[str]:
    return [name for (name,) in connection.execute(COLUMNS, [view])]


def test_one_release_back_and_forth(process: Process, database_url: str) -> None:
    migrate(process)
    with psycopg.connect(database_url, autocommit=True) as connection:
        sums = connection.execute(TO_READ).fetchall()
        views = [each.name for each in VIEWS["postgresql"]]
        columns = {name: columns_of(connection, name) for name in views}
        with pytest.raises(Exception, match="cannot drop columns from view"):
            go_back(process)
        statement = re.search(r"DROP VIEW IF EXISTS [\w, ]+;", PAGE)
        assert statement is not None, "the page says what the release before needs"
        connection.execute(statement[0].encode())
        go_back(process)
        assert columns_of(connection, "finance_events") != columns["finance_events"]
        assert "transactions" in migrate(process)
        assert not {*FORMER_MODELS} & process.positions.all(process.views).keys()
        assert {name: columns_of(connection, name) for name in views} == columns
        assert connection.execute(TO_READ).fetchall() == sums
        assert sums[0][1] > 0
    assert process.audit().ok


def test_a_view_that_loses_columns_keeps_its_rights(process: Process, database_url: str) -> None:
    migrate(process)
    with psycopg.connect(database_url, autocommit=True) as connection:
        connection.execute("CREATE ROLE reader_of_views")
        try:
            (wallets,) = (each for each in VIEWS["postgresql"] if each.name == "finance_wallets")
            body = wallets.bodies["postgresql"]
            later = f"CREATE VIEW finance_wallets AS SELECT w.*, 1 AS more FROM ({body}) AS w"  # noqa: S608  # Our own words.
            connection.execute("DROP VIEW finance_wallets")
            connection.execute(later.encode())
            connection.execute("GRANT SELECT ON finance_wallets TO reader_of_views, PUBLIC")
            with process.views.writing() as ours:
                define(ours, [wallets])
            assert columns_of(connection, "finance_wallets") == [*wallets.columns]
            connection.execute("SET ROLE reader_of_views")
            assert connection.execute("SELECT count(*) FROM finance_wallets").fetchone()
        finally:
            connection.execute(
                "RESET ROLE; DROP OWNED BY reader_of_views; DROP ROLE reader_of_views"
            )
