"""A condition on many values that is one statement, however many they are."""

from typing import Any

import msgspec
from sqlalchemy import BindParameter, ColumnElement, Dialect, String, bindparam
from sqlalchemy.dialects.postgresql import ARRAY
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.types import TypeDecorator, TypeEngine


class _Texts(TypeDecorator[list[str]]):
    """Texts in one parameter: an array on PostgreSQL, JSON on SQLite."""

    impl = String
    cache_ok = True

    def load_dialect_impl(self, dialect: Dialect) -> TypeEngine[Any]:
        return ARRAY(String) if dialect.name == "postgresql" else String()

    def process_bind_param(self, value: list[str] | None, dialect: Dialect) -> Any:
        assert value is not None
        return value if dialect.name == "postgresql" else as_json(value)


class OneOf(ColumnElement[bool]):
    """True where a column of text is one of the list that is bound to a name.

    An `in_` of as many values is compiled for each call, and planned for each number of them.
    """

    inherit_cache = False

    def __init__(self, column: ColumnElement[str], name: str) -> None:
        self.column = column
        self.texts: BindParameter[list[str]] = bindparam(name, type_=_Texts())


def as_json(texts: list[str]) -> str:
    """Return what a list is bound as on SQLite."""
    return msgspec.json.encode(texts).decode()


@compiles(OneOf, "postgresql")
def _array(element: OneOf, compiler: SQLCompiler, **options: Any) -> str:
    column, texts = (compiler.process(each, **options) for each in (element.column, element.texts))
    return f"{column} = ANY({texts})"


@compiles(OneOf, "sqlite")
def _list(element: OneOf, compiler: SQLCompiler, **options: Any) -> str:
    column, texts = (compiler.process(each, **options) for each in (element.column, element.texts))
    return f"{column} IN (SELECT value FROM json_each({texts}))"  # noqa: S608  # Both made by the compiler.
