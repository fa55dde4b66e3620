"""Statements that run often enough to go straight to the driver, at a tenth of SQLAlchemy's cost.

Also `OneOf`, a condition on a list of values whose statement is the same for lists of any length.
"""

from collections.abc import Mapping
from select import POLLIN, poll
from typing import Any
from uuid import UUID

import msgspec
from sqlalchemy import (
    BindParameter,
    ColumnElement,
    CompoundSelect,
    Connection,
    Dialect,
    Select,
    String,
    TextClause,
    UpdateBase,
    bindparam,
)
from sqlalchemy.dialects import sqlite
from sqlalchemy.dialects.postgresql import ARRAY, psycopg
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.types import TypeDecorator, TypeEngine

from projections.engine.inserting import driver_of


class _ListParameter(TypeDecorator[list[Any]]):
    """A list of texts or ids as one parameter: an array on PostgreSQL, JSON on SQLite."""

    impl = String
    cache_ok = True

    def __init__(self, kind: TypeEngine[Any]) -> None:
        super().__init__()
        self.kind = kind

    def load_dialect_impl(self, dialect: Dialect) -> TypeEngine[Any]:
        return ARRAY(self.kind) if dialect.name == "postgresql" else String()

    def process_bind_param(self, value: list[Any] | None, dialect: Dialect) -> Any:
        assert value is not None
        return value if dialect.name == "postgresql" else as_json(value)


class OneOf(ColumnElement[bool]):
    """True where a column of texts or ids is in the list that is bound to a name.

    SQLAlchemy's `in_` would be compiled at each call, and planned anew for each length.
    """

    inherit_cache = False

    def __init__(self, column: ColumnElement[Any], name: str) -> None:
        self.column = column
        self.values: BindParameter[list[Any]] = bindparam(name, type_=_ListParameter(column.type))


def as_json(values: list[Any]) -> str:
    """Return the list in the form that SQLite is given: JSON, in which ids are text."""
    texts = [each.hex if isinstance(each, UUID) else each for each in values]
    return msgspec.json.encode(texts).decode()


@compiles(OneOf)
def _one_of(element: OneOf, compiler: SQLCompiler, **options: Any) -> str:
    column, values = (
        compiler.process(each, **options) for each in (element.column, element.values)
    )
    if compiler.dialect.name == "postgresql":
        return f"{column} = ANY({values})"
    return f"{column} IN (SELECT value FROM json_each({values}))"  # noqa: S608  # The compiler made both.


_NAMED: Mapping[str, Dialect] = {
    "sqlite": sqlite.dialect(paramstyle="named"),
    "postgresql": psycopg.dialect(paramstyle="pyformat"),  # type: ignore[no-untyped-call]  # Of the library.
}

Statement = Select[*tuple[Any, ...]] | CompoundSelect[*tuple[Any, ...]] | TextClause | UpdateBase


class HotStatement:
    """A statement with named parameters that is compiled once for each kind of database.

    Rows come as the driver returns them, so select only text, numbers and bytes; parameters are
    given as the driver takes them. Use `OneOf` instead of `in_`, which is compiled at each call.
    """

    def __init__(self, statement: Statement) -> None:
        self.statement = statement
        self._compiled: dict[str, tuple[str, Mapping[str, Any]]] = {}

    def of(self, dialect: Dialect) -> tuple[str, Mapping[str, Any]]:
        """Return the text of the statement for a kind of database, and its constant values."""
        compiled = self._compiled.get(dialect.name)
        if compiled is None:
            made = self.statement.compile(dialect=_NAMED[dialect.name])
            assert "__[POSTCOMPILE" not in str(made), made  # Nothing would fill in an open place.
            compiled = self._compiled[dialect.name] = (str(made), made.params)
        return compiled


def run(connection: Connection, /, hot: HotStatement, **values: Any) -> Any:
    """Run a statement on a connection, within its transaction if it has one; return a cursor."""
    with driver_of(connection) as driver:
        return execute(driver, connection.dialect, hot, values)


def execute(driver: Any, dialect: Dialect, hot: HotStatement, values: Mapping[str, Any]) -> Any:
    """Run a statement on a bare connection of the driver; return a cursor."""
    text, fixed = hot.of(dialect)
    if dialect.name == "sqlite":
        bound = {name: _on_sqlite(value) for name, value in values.items()}
        return driver.execute(text, {**fixed, **bound})
    # In text form PostgreSQL would send bytes at twice their length.
    return driver.execute(text, {**fixed, **values}, binary=True)


def _on_sqlite(value: Any) -> Any:
    if isinstance(value, UUID):
        return value.hex
    return as_json(value) if isinstance(value, list) else value


def has_news(connection: Any) -> bool:
    """Tell whether an idle connection has something to read, which means that the server ended it.

    Looking at the socket costs no round trip; a ping would.
    """
    if connection.closed:
        return True
    waiting = poll()
    waiting.register(connection.fileno(), POLLIN)
    return bool(waiting.poll(0))
