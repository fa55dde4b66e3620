"""Own tables have a version: cheap sets are made anew, others are never changed by mistake."""

from datetime import timedelta
from pathlib import Path

import pytest
from sqlalchemy import inspect

from app.processes.migrate import (
    SETS,
    CannotMigrate,
    is_migrated,
    migrate,
    newer_tables,
    table_versions,
)
from projections.engine.database import Database
from tests.installation import Installation, Process

pytestmark = pytest.mark.each_database

OLDER = "UPDATE schema_versions SET version = 0 WHERE name = '{}'"  # One table has all sets.
AHEAD = timedelta(hours=1)
FORMER = "INSERT INTO schema_versions VALUES ('{}', 1)"
NEWER = "UPDATE schema_versions SET version = 99"


def run(database: Database, statement: str) -> None:
    with database.writing() as connection:
        connection.exec_driver_sql(statement)


def test_stores_of_an_older_shape_are_made_anew(process: Process) -> None:
    run(process.stores, "DROP TABLE counters")
    run(process.stores, "CREATE TABLE counters (key TEXT)")
    run(process.stores, OLDER.format("counters"))
    assert not is_migrated(process)
    migrate(process)
    assert is_migrated(process)
    assert process.counters.advance_simulated(AHEAD) == AHEAD


def test_sets_of_1_0_0_are_no_later_ones_and_its_pieces_of_numbers_go(process: Process) -> None:
    run(process.stores, "CREATE TABLE network_number_parts (part TEXT)")
    for name in SETS:
        run(process.stores, FORMER.format(name))
    migrate(process)
    assert not newer_tables(process, table_versions(process))
    own = {each.name: each.version for each in process.own_tables}
    assert table_versions(process).items() >= own.items()
    with process.stores.reading() as connection:
        assert not inspect(connection).has_table("network_number_parts")


def test_positions_of_an_older_shape_cost_a_rebuild_only(process: Process) -> None:
    organization_id = process.organization()
    process.projector.catch_up()
    run(process.views, OLDER.format("positions"))
    assert migrate(process) == [model.name for model in process.models]
    assert process.read(process.organizations.get, organization_id) is not None


@pytest.mark.parametrize("purpose", ["stores", "views"])
def test_tables_of_a_newer_release_are_left_alone(
    installation: Installation, process: Process, purpose: str
) -> None:
    run(getattr(process, purpose), NEWER)
    with pytest.raises(CannotMigrate, match="version 99"):
        migrate(installation.process())


def test_a_file_that_is_not_there_is_not_migrated(tmp_path: Path) -> None:
    installation = Installation(tmp_path)
    (tmp_path / "service-stores.db").unlink()
    assert not is_migrated(installation.process())
    installation.close()
