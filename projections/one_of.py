"""A condition on many values that is one statement, however many they are."""

from typing import Any
from uuid import UUID

import msgspec
from sqlalchemy import BindParameter, ColumnElement, Dialect, String, bindparam
from sqlalchemy.dialects.postgresql import ARRAY
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.types import TypeDecorator, TypeEngine


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
