"""The version of each set of own tables, so that a later release can tell an older installation."""

from collections.abc import Sequence

from sqlalchemy import Column, Connection, Integer, MetaData, String, Table, inspect, select

from projections.engine.database import Database

_METADATA = MetaData()
_VERSIONS = Table(
    "schema_versions",
    _METADATA,
    Column("name", String, primary_key=True),
    Column("version", Integer, nullable=False),
)


class NewerSchema(Exception):
    """Raised when a later release has upgraded the tables: this one must not touch them."""


def ensure(
    database: Database, name: str, version: int, tables: Sequence[MetaData], *, cheap: bool
) -> None:
    """Make a set of tables in their present version.

    A set that is `cheap` to lose is dropped and made anew when its version differs; one that is
    not needs a step of its own here before its version may rise.
    """
    with database.writing() as connection:
        _METADATA.create_all(connection)
        found = _read(connection, name)
        _refuse_newer(name, found, version)
        if found != version and cheap:
            for metadata in tables:
                metadata.drop_all(connection)
        assert cheap or found in {None, version}, "an upgrade of these tables has to be written"
        for metadata in tables:
            metadata.create_all(connection)
        if found != version:
            connection.execute(_VERSIONS.delete().where(_VERSIONS.c.name == name))
            connection.execute(_VERSIONS.insert().values(name=name, version=version))


def is_current(database: Database, name: str, version: int) -> bool:
    """Tell whether a set of tables is there in this version; raises NewerSchema for a later one."""
    with database.reading() as connection:
        if not inspect(connection).has_table(_VERSIONS.name):
            return False
        found = _read(connection, name)
    _refuse_newer(name, found, version)
    return found == version


def _refuse_newer(name: str, found: int | None, version: int) -> None:
    if found is not None and found > version:
        message = f"the tables of {name} are of version {found}, this release knows {version}"
        raise NewerSchema(message)


def versions(database: Database) -> dict[str, int]:
    """Return the version of each set of tables in a database; none where none was made."""
    with database.reading() as connection:
        if not inspect(connection).has_table(_VERSIONS.name):
            return {}
        return {row.name: row.version for row in connection.execute(select(_VERSIONS))}


def _read(connection: Connection, name: str) -> int | None:
    statement = select(_VERSIONS.c.version).where(_VERSIONS.c.name == name)
    return connection.execute(statement).scalar_one_or_none()
