"""Own tables have a version: cheap sets are made anew, others are never changed by mistake."""

from pathlib import Path

import pytest

from app.processes.migrate import CannotMigrate, is_migrated, migrate
from projections.engine.database import Database
from tests.installation import Installation, Process, SetClock

OLDER = "UPDATE schema_versions SET version = 0 WHERE name = '{}'"  # One table has all sets.
NEWER = "UPDATE schema_versions SET version = 99"


def run(database: Database, statement: str) -> None:
    with database.writing() as connection:
        connection.exec_driver_sql(statement)


def test_stores_of_an_older_shape_are_made_anew(process: Process) -> None:
    run(process.stores, "DROP TABLE leases")
    run(process.stores, "CREATE TABLE leases (key TEXT)")
    run(process.stores, OLDER.format("stores"))
    assert not is_migrated(process)
    migrate(process)
    assert is_migrated(process)
    clock = SetClock()
    assert (
        process.leases.acquire(
            process.accounts.new_id(), process.accounts.new_id(), "first", clock.forward(seconds=30)
        )
        is None
    )


def test_positions_of_an_older_shape_cost_a_rebuild_only(process: Process) -> None:
    organization_id = process.organization()
    process.projector.catch_up()
    run(process.views, OLDER.format("positions"))
    assert migrate(process) == [model.name for model in process.models]
    with process.views.reading() as connection:
        assert process.organizations.get(connection, organization_id) is not None


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
