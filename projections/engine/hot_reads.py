"""Hot statements on the driver's own connections: the library's way to a row costs ten times it.

A condition on many values that is one statement, however many they are.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from select import POLLIN, poll
from threading import local
from typing import Any, Protocol, cast
from uuid import UUID

import msgspec
from sqlalchemy import (
    BindParameter,
    ColumnElement,
    Connection,
    Dialect,
    Engine,
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


class _Several(TypeDecorator[list[Any]]):
    """Texts or ids in one parameter: an array on PostgreSQL, JSON on SQLite."""

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
    """True where a column of texts or ids is one of the list that is bound to a name.

    An `in_` of as many values is compiled for each call, and planned for each number of them.
    """

    inherit_cache = False

    def __init__(self, column: ColumnElement[Any], name: str) -> None:
        self.column = column
        self.values: BindParameter[list[Any]] = bindparam(name, type_=_Several(column.type))


def as_json(values: list[Any]) -> str:
    """Return what a list is bound as on SQLite, where an id is text."""
    texts = [each.hex if isinstance(each, UUID) else each for each in values]
    return msgspec.json.encode(texts).decode()


@compiles(OneOf, "postgresql")
def _array(element: OneOf, compiler: SQLCompiler, **options: Any) -> str:
    column, values = (
        compiler.process(each, **options) for each in (element.column, element.values)
    )
    return f"{column} = ANY({values})"


@compiles(OneOf, "sqlite")
def _list(element: OneOf, compiler: SQLCompiler, **options: Any) -> str:
    column, values = (
        compiler.process(each, **options) for each in (element.column, element.values)
    )
    return f"{column} IN (SELECT value FROM json_each({values}))"  # noqa: S608  # Both made by the compiler.


_NAMED: Mapping[str, Callable[..., Dialect]] = {
    "sqlite": sqlite.dialect,
    "postgresql": psycopg.dialect,
}
_STYLES = {"sqlite": "named", "postgresql": "pyformat"}

Statement = Select[*tuple[Any, ...]] | TextClause | UpdateBase


class Quick:
    """A statement that is compiled once for each database; its parameters have names.

    What it selects comes as the driver has it: select text, numbers and bytes. No `in_`, which is
    compiled for each call, but `OneOf`. What it writes is given as the driver takes it.
    """

    def __init__(self, statement: Statement) -> None:
        self.statement = statement
        self._compiled: dict[str, tuple[str, Mapping[str, Any]]] = {}

    def of(self, dialect: Dialect) -> tuple[str, Mapping[str, Any]]:
        """Return the text for a database, and the values that are part of the statement."""
        compiled = self._compiled.get(dialect.name)
        if compiled is None:
            named = _NAMED[dialect.name](paramstyle=_STYLES[dialect.name])
            made = self.statement.compile(dialect=named)
            assert "__[POSTCOMPILE" not in str(made), made  # Nobody fills in what is left open.
            compiled = self._compiled[dialect.name] = (str(made), made.params)
        return compiled


def run(connection: Connection, quick: Quick, **values: Any) -> Any:
    """Run a statement on a connection, in its transaction if it has one; return a cursor."""
    text, fixed = quick.of(connection.dialect)
    with driver_of(connection) as driver:
        if connection.dialect.name == "sqlite":
            return driver.execute(text, {**fixed, **_all_on_sqlite(values)})
        return driver.execute(text, {**fixed, **values}, binary=True)


class Drivers(Protocol):
    """Lends connections of the driver, in autocommit."""

    def lent(self) -> AbstractContextManager[Any]:
        """Lend one; it is dropped when the block raises."""
        ...


class QuickReads:
    """Runs quick statements on one engine."""

    def __init__(self, engine: Engine, kept: "Kept") -> None:
        self._dialect = engine.dialect
        self._is_file = engine.dialect.name == "sqlite"
        # As text PostgreSQL writes bytes twice as long.
        self._form: Mapping[str, bool] = {} if self._is_file else {"binary": True}
        self._drivers = kept if self._is_file else cast("Drivers", engine.pool)
        self._error: type[Exception] = engine.dialect.loaded_dbapi.Error

    def rows(self, quick: Quick, values: Mapping[str, Any]) -> Sequence[Sequence[Any]] | None:
        """Return all rows; None when the database failed: ask it the ordinary way, which tells."""
        text, fixed = quick.of(self._dialect)
        try:
            with self._drivers.lent() as driver:
                bound = {**fixed, **self._bound(values)}
                found: Sequence[Sequence[Any]] = driver.execute(
                    text, bound, **self._form
                ).fetchall()
                return found
        except self._error:
            return None

    def _bound(self, values: Mapping[str, Any]) -> Mapping[str, Any]:
        if not self._is_file:
            return values
        return _all_on_sqlite(values)


class Kept:
    """On SQLite a thread keeps the connection that it reads on, quickly or not.

    Borrowing one costs more than most reads.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine  # In autocommit.
        self._held = local()

    def connection(self) -> Connection:
        """Return the connection of this thread."""
        held: Connection | None = getattr(self._held, "connection", None)
        if held is None:
            held = self._held.connection = self._engine.connect()
        return held

    @contextmanager
    def lent(self) -> Iterator[Any]:
        """Lend its driver's side."""
        try:
            yield self.connection().connection.driver_connection
        except BaseException:
            self.close()  # It may be broken, or in the midst of a result.
            raise

    def close(self) -> None:
        """Close what this thread holds; that of others is closed with them."""
        held: Connection | None = getattr(self._held, "connection", None)
        if held is not None:
            self._held.connection = None
            held.close()


def as_id(value: UUID | str) -> UUID:
    """Return an id that a driver has told: SQLite's tells the text of it."""
    return UUID(value) if isinstance(value, str) else value


def _all_on_sqlite(values: Mapping[str, Any]) -> Mapping[str, Any]:
    return {name: _on_sqlite(value) for name, value in values.items()}


def _on_sqlite(value: Any) -> Any:
    if isinstance(value, UUID):
        return value.hex
    return as_json(value) if isinstance(value, list) else value


def has_news(connection: Any) -> bool:
    """Tell whether the server has said something to a connection at rest: that it has ended it.

    It costs no round trip, which a ping does.
    """
    if connection.closed:
        return True
    waiting = poll()
    waiting.register(connection.fileno(), POLLIN)
    return bool(waiting.poll(0))
