"""A shape: a thing said once, for its table and row, JSON, CSV, the document, and commands.

A field is of the type in which it is told. Where the table keeps another form (an amount as
micro-units, a moment as a number), its type says so.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from functools import cache
from typing import Annotated, Any, Final, Generic, NamedTuple, Self, TypeVar
from uuid import NAMESPACE_OID, uuid5

import msgspec
from msgspec import UNSET, Meta, Struct, inspect
from msgspec.structs import FieldInfo, asdict
from sqlalchemy import BigInteger, Boolean, Column, LargeBinary, String, Uuid
from sqlalchemy.types import TypeEngine

from domain.ids import as_id
from domain.money import format_amount
from projections.engine.database import from_micros, to_micros

S = TypeVar("S", bound=Struct)


def means(description: str | None = None, *, example: object = None, **schema: object) -> Meta:
    """Return what the OpenAPI document says about a field; `schema` are further keywords."""
    examples = None if example is None else [example]
    return Meta(description=description, examples=examples, extra_json_schema=schema)


PLAN_NAME: Final = "France 5 GB"  # In all examples.


def id_of(thing: str) -> str:
    """Return the id that a thing has in all examples, so that a reader can follow it."""
    return str(uuid5(NAMESPACE_OID, thing))


def stored(form: str, column: str | None = None) -> Meta:
    """Name the form in which a table keeps a field, and its column (of parts: its beginning)."""
    return Meta(extra={"form": form} if column is None else {"form": form, "column": column})


# From these keywords the document makes a named schema: its name, and alternatives to it.
NAME, OR = "x-schema-name", "x-schema-or"
MORE_MAY_COME: Final = {"type": "string"}


def one_of(name: str, known: Iterable[str], *others: Mapping[str, str]) -> dict[str, Any]:
    """Return the keywords of an enumeration with a name; `others` may stand in its place."""
    return {"enum": [*known], NAME: name, OR: [*others]}


Moment = Annotated[
    str, means(format="date-time", example="2026-11-21T03:04:05.100Z"), stored("moment")
]
Amount = Annotated[
    str,
    means(
        "A decimal with two to six decimals.",
        example="12.50",
        pattern=r"^-?[0-9]+\.[0-9]{2,6}$",
    ),
    stored("amount"),
]
Currency = Annotated[str, means("ISO 4217.", example="USD", pattern="^[A-Z]{3}$")]


class Shape(Struct):
    """What is told of one thing; a field that is UNSET is not told."""

    @classmethod
    def of(cls, *sources: object, **given: Any) -> Self:
        """Read each field that is neither given nor optional from the first source that has it.

        It is the attribute of the field's name, perhaps followed by `_id` or `_count`; one that
        ends in `_micros` becomes an amount, and a moment a text.
        """
        names = (name for name in _required(cls) if name not in given)
        return cls(**{name: _attribute(sources, name) for name in names}, **given)

    def facts(self) -> Mapping[str, Any]:
        fields = ((name, getattr(self, name)) for name in self.__struct_fields__)
        return {name: value for name, value in fields if value is not UNSET}

    def cells(self, columns: Sequence[str]) -> Sequence[object]:
        """Return the cells of a table: parts have columns of their own, a mapping is JSON."""
        flat: dict[str, object] = {}
        for name, value in self.facts().items():
            if isinstance(value, Struct):
                flat |= {f"{name}_{each}": part for each, part in asdict(value).items()}
            else:
                is_json = isinstance(value, Mapping)
                flat[name] = msgspec.json.encode(value).decode() if is_json else value
        return [flat.get(name) for name in columns]


def pick(names: str, *sources: object, **given: Any) -> dict[str, Any]:
    """Return facts in the order of these names, as `Shape.of` reads them, and what else is given.

    What is given as UNSET is left out.
    """
    read = {it: given[it] if it in given else _attribute(sources, it) for it in names.split()}
    return {name: value for name, value in (read | given).items() if value is not UNSET}


def amount_of(micros: int | None) -> str | None:
    """Return an amount as it is told; None if there is none."""
    return None if micros is None else format_amount(micros)


def format_time(moment: datetime) -> str:
    """Write a moment as ISO 8601 in UTC with milliseconds, such as `2026-11-21T03:04:05.678Z`."""
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


@cache
def _required(shape: type[Struct]) -> list[str]:
    return [field.name for field in msgspec.structs.fields(shape) if field.required]


def _attribute(sources: Sequence[object], name: str) -> Any:
    for source in sources:
        for attribute in (name, f"{name}_id", f"{name}_count"):
            if hasattr(source, attribute):
                value = getattr(source, attribute)
                return format_time(value) if isinstance(value, datetime) else value
        if hasattr(source, f"{name}_micros"):
            return amount_of(getattr(source, f"{name}_micros"))
    raise AttributeError(name)


class _Form(NamedTuple):
    """How a table keeps a value; None is NULL in each form."""

    kind: type[TypeEngine[Any]]
    read: Callable[[Any], Any] | None = None  # None: it is the same.
    write: Callable[[Any], Any] | None = None


def _never(value: Any) -> Any:
    """Refuse to write what is only told: as it is told it may have lost its microseconds."""
    raise TypeError(value)


_FORMS: Mapping[object, _Form] = {
    "amount": _Form(BigInteger, format_amount, _never),
    "moment": _Form(BigInteger, lambda it: format_time(from_micros(it)), _never),
    inspect.DateTimeType: _Form(BigInteger, from_micros, to_micros),
    inspect.UUIDType: _Form(Uuid, as_id),
    inspect.IntType: _Form(BigInteger),
    inspect.BoolType: _Form(Boolean, bool),
    inspect.StrType: _Form(String),
    inspect.LiteralType: _Form(String),
    inspect.BytesType: _Form(LargeBinary),
}


class _Field(NamedTuple):
    name: str  # Of the struct.
    columns: tuple[str, ...]  # More than one: those of the parts of a struct.
    form: _Form
    parts: "Stored[Any] | None"
    absent: Any  # What stands for NULL; `...`: it is never NULL.


class Stored(Generic[S]):
    """How a table keeps a struct: a column for each field, JSON for what no column can hold."""

    def __init__(self, kind: type[S], **forms: type[TypeEngine[Any]]) -> None:
        """Read the fields; `forms` names SQL types that do not follow from the fields."""
        self._kind, self._forms = kind, forms
        self._fields = [*map(_field_of, msgspec.structs.fields(kind))]
        self.names = tuple(name for each in self._fields for name in each.columns)

    def columns(self, *keys: str) -> list[Column[Any]]:
        """Define the columns of a table; `keys` are those of its primary key."""
        return [
            Column(
                name,
                self._forms.get(name, kind),
                primary_key=name in keys,
                autoincrement=False,
                nullable=each.absent is not ...,
            )
            for each in self._fields
            for name, kind in zip(each.columns, _kinds_of(each), strict=True)
        ]

    def row(self, thing: S) -> dict[str, Any]:
        row: dict[str, Any] = {}
        for name, columns, form, parts, _ in self._fields:
            value = getattr(thing, name)
            if value is None or value is UNSET:
                for column in columns:
                    row[column] = None
            elif parts is not None:
                row.update(zip(columns, parts.row(value).values(), strict=True))
            else:
                row[columns[0]] = value if form.write is None else form.write(value)
        return row

    def read(self, row: Sequence[Any]) -> S:
        """Return what a row holds; its first values are those of the columns in their order."""
        values, at = [], 0
        for _, columns, form, parts, absent in self._fields:
            value = row[at]
            if value is None:
                values.append(absent)
            elif parts is not None:
                values.append(parts.read(row[at:]))
            else:
                values.append(value if form.read is None else form.read(value))
            at += len(columns)
        return self._kind(*values)


def _kinds_of(field: _Field) -> list[type[TypeEngine[Any]]]:
    if field.parts is None:
        return [field.form.kind]
    return [type(each.type) for each in field.parts.columns()]


def _field_of(field: FieldInfo) -> _Field:
    info: Any = inspect.type_info(field.type)
    name, extra, absent = field.name, dict[str, str](), UNSET if field.default is UNSET else ...
    while isinstance(info, inspect.Metadata | inspect.UnionType):
        if isinstance(info, inspect.Metadata):
            info, extra = info.type, extra | (info.extra or {})
        else:
            info, *more = [each for each in info.types if not isinstance(each, inspect.NoneType)]
            assert not more, name
            absent = None
    form = extra.get("form")
    if form == "parts":
        parts, before = Stored(info.cls), extra.get("column", f"{name}_")
        return _Field(name, tuple(f"{before}{each}" for each in parts.names), _JSON, parts, absent)
    known = _FORMS.get(form) or _FORMS.get(type(info))
    column = extra.get("column", f"{name}_micros" if form == "amount" else name)
    if known is None:
        known = _JSON._replace(read=msgspec.json.Decoder(field.type).decode)
    return _Field(name, (column,), known, None, absent)


def _json(value: Any) -> str:
    return msgspec.json.encode(value, order="deterministic").decode()  # A set has no order.


_JSON = _Form(String, msgspec.json.decode, _json)
