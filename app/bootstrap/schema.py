"""Stores the version of each set of own tables, so that a release recognizes older tables."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from sqlalchemy import Column, Connection, Integer, MetaData, String, Table, inspect, select

from domain.errors import ForOperator
from projections.engine.database import Database
from projections.engine.sql_views import detached

_METADATA = MetaData()
_VERSIONS = Table(
    "schema_versions",
    _METADATA,
    Column("name", String, primary_key=True),
    Column("version", Integer, nullable=False),
)


class NewerSchema(ForOperator):
    """Raised when a later release has upgraded the tables; this release must not touch them."""


class OwnTables(NamedTuple):
    """A set of tables that are created and upgraded together.

    A set that is `cheap` to lose is dropped and created again when its version differs. For any
    other set write a migration in `ensure` before you raise its version.
    """

    name: str
    version: int
    database: Database
    tables: Sequence[MetaData]
    cheap: bool = True


def ensure(own: OwnTables) -> None:
    with own.database.writing() as connection:
        _METADATA.create_all(connection)
        found = _read(connection).get(own.name)
        _refuse_newer(own, found)
        assert own.cheap or found in {None, own.version}, "an upgrade of these has to be written"
        names = [name for metadata in own.tables for name in metadata.tables]
        with detached(connection, names if found != own.version else []):
            for metadata in own.tables:
                if found != own.version and own.cheap:
                    metadata.drop_all(connection)
                metadata.create_all(connection)
                for table in metadata.tables.values():
                    for index in table.indexes:  # A later release may have more of them.
                        index.create(connection, checkfirst=True)
        if found != own.version:
            connection.execute(_VERSIONS.delete().where(_VERSIONS.c.name == own.name))
            connection.execute(_VERSIONS.insert().values(name=own.name, version=own.version))


def is_current(own: OwnTables, found: Mapping[str, int]) -> bool:
    """Tell whether `versions` has this one of a set; raises NewerSchema for a later one."""
    _refuse_newer(own, found.get(own.name))
    return found.get(own.name) == own.version


def _refuse_newer(own: OwnTables, found: int | None) -> None:
    if found is not None and found > own.version:
        raise NewerSchema(
            f"the tables of {own.name} are of version {found}, this release knows {own.version}"
        )


def versions(database: Database) -> dict[str, int]:
    """Return the version of each set of tables in a database; empty where none was created."""
    with database.reading() as connection:
        if not inspect(connection).has_table(_VERSIONS.name):
            return {}
        return _read(connection)


def _read(connection: Connection) -> dict[str, int]:
    return {row.name: row.version for row in connection.execute(select(_VERSIONS))}
