"""Every version of every set of tables has the shape that it had when it was first released.

`tables.json` holds the columns by set, version and table. No entry is ever changed: where a shape
changes, the version of its set is raised and a new entry is added, so that `migrate` can tell the
tables of an earlier release from its own; it goes with its set. The entries but for
`due`, `notes`, `reading_turns`, `counters`, `statements`, `usage`, `jobs`,
`organizations` and `plans` from 2 on, `links` from 5 on, `api_clients` and `transactions` from 3 on
and those of webhooks are of release 289da21; any order.
"""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from sqlalchemy import inspect

from projections.engine.database import Database
from tests.installation import Process, sqlite_only

RELEASED: Mapping[str, Mapping[str, Sequence[str]]] = json.loads(
    Path(__file__).with_name("tables.json").read_text()
)
NOT_OURS = ("sqlite_", "schema_versions")


def shapes(database: Database) -> dict[str, list[str]]:
    """Return the columns of each table of a database."""
    with database.reading() as connection:
        reader = inspect(connection)
        return {
            table: [
                f"{column['name']} {column['type']}{'' if column['nullable'] else ' NOT NULL'}"
                for column in reader.get_columns(table)
            ]
            for table in reader.get_table_names()
            if not table.startswith(NOT_OURS)
        }


def released(name: str) -> Mapping[str, Sequence[str]]:
    return {table: sorted(columns) for table, columns in RELEASED[name].items()}


def sets(process: Process) -> dict[str, Sequence[str]]:
    """Return the tables of each set; the log has no version, because its table never changes."""
    own = {
        f"{each.name} {each.version}": [name for held in each.tables for name in held.tables]
        for each in process.own_tables
    }
    models = {
        f"{each.name} {each.version}": [table.name for table in each.tables]
        for each in process.models
    }
    return {"log 1": ["stored_events"], **own, **models}


@sqlite_only("one definition makes the tables of both databases")
def test_tables_have_the_shape_that_their_version_was_released_with(process: Process) -> None:
    found: dict[str, list[str]] = {}
    for database in (process.vault.database, process.views, process.stores):
        found |= shapes(database)
    for name, tables in sets(process).items():
        shown = {table: sorted(found.pop(table)) for table in tables}
        entry = f"tests/golden/tables.json needs an entry: {json.dumps({name: shown})}"
        assert name in RELEASED, entry
        assert shown.items() <= released(name).items(), name  # A set may have lost a table.
    assert found == {}, "these tables belong to no set"
