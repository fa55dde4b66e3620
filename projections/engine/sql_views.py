"""SQL views for other programs, over tables that rebuilds swap.

PostgreSQL ties a view to a table and not to its name: a table that a view reads cannot be dropped.
So a swap empties the views over its tables and fills them again, in its own transaction. A view
keeps its grants in this way, which it would lose if it were dropped.
"""

import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from typing import Any

from sqlalchemy import Connection, TableClause, column, table, text
from sqlalchemy.exc import DBAPIError
from sqlalchemy.types import TypeEngine

_MARK_DIGITS = 12  # Of the hash that identifies a definition.

_OVER = text(
    "SELECT DISTINCT v.oid AS oid, v.oid::regclass::text AS name, pg_get_viewdef(v.oid) AS body "
    "FROM pg_depend AS d JOIN pg_rewrite AS r ON r.oid = d.objid "
    "JOIN pg_class AS v ON v.oid = r.ev_class AND v.relkind = 'v' AND v.oid <> d.refobjid "
    "WHERE d.classid = 'pg_rewrite'::regclass AND d.refclassid = 'pg_class'::regclass "
    "AND d.refobjid IN (SELECT to_regclass(name) FROM unnest(CAST(:tables AS text[])) AS name)"
)
_COLUMNS = text(
    "SELECT string_agg(format('NULL::%s AS %I', format_type(atttypid, atttypmod), attname), ', ' "
    "ORDER BY attnum) FROM pg_attribute WHERE attrelid = :oid AND attnum > 0 AND NOT attisdropped"
)
_GRANTS = text(
    "SELECT format('GRANT %s ON %s TO %s', privilege_type, oid::regclass, "
    "CASE grantee WHEN 0 THEN 'PUBLIC' ELSE grantee::regrole::text END) "
    "FROM pg_class, aclexplode(relacl) WHERE oid = to_regclass(:name) AND grantee <> relowner"
)

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ViewColumn:
    """A column of a view: its type, and its meaning in words."""

    kind: TypeEngine[Any]
    meaning: str


@dataclass(frozen=True)
class SqlView:
    """A view; `bodies` has its SELECT for each kind of database.

    Programs that we do not know read it, so columns are only added at the end, never changed.
    """

    name: str
    meaning: str
    columns: Mapping[str, ViewColumn]
    bodies: Mapping[str, str]

    @cached_property
    def table(self) -> TableClause:
        """The view for statements of ours."""
        return table(self.name, *(column(name, each.kind) for name, each in self.columns.items()))


def define(connection: Connection, views: Sequence[SqlView]) -> None:
    """Create the views that are missing, and replace those of an earlier release."""
    for view in views:
        body = view.bodies[connection.dialect.name]
        made = f'CREATE VIEW "{view.name}" AS {body}'
        if connection.dialect.name != "sqlite":
            _define_on_postgresql(connection, view, body)
        elif _views_on_sqlite(connection).get(view.name) != made:
            connection.exec_driver_sql(f'DROP VIEW IF EXISTS "{view.name}"')
            connection.exec_driver_sql(made)


@contextmanager
def detached(connection: Connection, tables: Sequence[str]) -> Iterator[None]:
    """Let no view depend on these tables meanwhile; afterwards the views read them by name again.

    A view that cannot read the new tables stays empty until `define` makes it anew.
    """
    if not tables:
        yield
        return
    if connection.dialect.name == "sqlite":
        views = _views_on_sqlite(connection)
        for name in views:
            connection.exec_driver_sql(f'DROP VIEW "{name}"')
        yield
        for statement in views.values():
            connection.exec_driver_sql(statement)
        return
    found = connection.execute(_OVER, {"tables": [*tables]}).all()
    for view in found:
        columns = connection.execute(_COLUMNS, {"oid": view.oid}).scalar_one()
        _run(connection, f"CREATE OR REPLACE VIEW {view.name} AS SELECT {columns} WHERE false")
    yield
    for view in found:
        try:
            with connection.begin_nested():
                _run(connection, f"CREATE OR REPLACE VIEW {view.name} AS {view.body}")
        except DBAPIError as error:
            logger.warning("the view %s does not fit the new tables: %s", view.name, error.orig)
            _run(connection, f"COMMENT ON VIEW {view.name} IS NULL")


def _views_on_sqlite(connection: Connection) -> dict[str, str]:
    known = text("SELECT name, sql FROM sqlite_master WHERE type = 'view'")
    return {row.name: row.sql for row in connection.execute(known)}


def _define_on_postgresql(connection: Connection, view: SqlView, body: str) -> None:
    """Define a view, unless its comment shows that it is up to date; replacing one takes a lock."""
    mark = f"{view.meaning} ({sha256(body.encode()).hexdigest()[:_MARK_DIGITS]})"
    comment = text("SELECT obj_description(to_regclass(:name), 'pg_class')")
    if connection.execute(comment, {"name": view.name}).scalar_one() == mark:
        return
    try:
        with connection.begin_nested():
            _run(connection, f"CREATE OR REPLACE VIEW {view.name} AS {body}")
    except DBAPIError as error:
        if getattr(error.orig, "sqlstate", None) != "42P16":  # A later release had more columns.
            raise
        grants = connection.execute(_GRANTS, {"name": view.name}).scalars().all()
        _run(connection, f"DROP VIEW {view.name}; CREATE VIEW {view.name} AS {body}")
        for grant in grants:
            _run(connection, grant)
    for name, each in view.columns.items():
        _run(connection, f'COMMENT ON COLUMN {view.name}."{name}" IS {_quoted(each.meaning)}')
    _run(connection, f"COMMENT ON VIEW {view.name} IS {_quoted(mark)}")


def _run(connection: Connection, statement: str) -> None:
    """Run a statement as it is: to the driver a `%` in it is no parameter."""
    connection.execution_options(no_parameters=True).exec_driver_sql(statement)


def _quoted(words: str) -> str:
    return "'" + words.replace("'", "''") + "'"
