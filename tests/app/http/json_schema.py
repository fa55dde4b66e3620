"""Whether a value is what a schema of the OpenAPI document describes.

It knows the keywords of JSON Schema 2020-12 that the document uses, and fails on any other. Replies
may grow, so a schema admits fields that it does not name; these checks do not, because a field that
we send and do not describe is a fault of ours. In a pattern `$` is the very end, as in ECMAScript.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from datetime import date, datetime
from functools import reduce
from operator import getitem
from typing import Any
from urllib.parse import urlsplit
from uuid import UUID

Schema = Mapping[str, Any]
Document = Mapping[str, Any]
Problems = Iterator[str]

TYPES: Mapping[str, type | tuple[type, ...]] = {
    "object": dict,
    "array": list,
    "string": str,
    "integer": int,
    "number": (int, float),
    "boolean": bool,
    "null": type(None),
}
FORMATS: Mapping[str, Callable[[str], object]] = {
    "uuid": UUID,
    "date-time": lambda text: datetime.fromisoformat(text).utcoffset() is not None,
    "date": date.fromisoformat,
    "binary": str,
    "uri": lambda text: urlsplit(text).scheme and urlsplit(text).netloc,
    "uri-reference": urlsplit,
}
SAY_NOTHING = {"description", "examples", "default"}


def problems(document: Document, schema: Schema, value: Any, place: str = "") -> Problems:
    """Say where a value differs from its schema."""
    for keyword, wanted in schema.items():
        if keyword not in SAY_NOTHING:
            yield from CHECKS[keyword](document, wanted, value, place)
    if isinstance(value, dict) and "properties" in schema and "$ref" not in schema:
        unknown = value.keys() - schema["properties"].keys()
        yield from (f"{place}.{name}: not described" for name in unknown)


def _fits(document: Document, schema: Schema, value: Any) -> bool:
    return not [*problems(document, schema, value)]


def resolve(document: Document, part: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return what a part of the document is or refers to."""
    while "$ref" in part:
        _, *names = part["$ref"].split("/")
        part = reduce(getitem, names, document)
    return part


def _reference(document: Document, wanted: str, value: Any, place: str) -> Problems:
    return problems(document, resolve(document, {"$ref": wanted}), value, place)


def _type(_: Document, wanted: str | list[str], value: Any, place: str) -> Problems:
    names = [wanted] if isinstance(wanted, str) else wanted
    is_flag = isinstance(value, bool)
    if not any(isinstance(value, TYPES[name]) and is_flag == (name == "boolean") for name in names):
        yield f"{place}: {value!r} is no {wanted}"


def _format(_: Document, wanted: str, value: Any, place: str) -> Problems:
    try:
        if isinstance(value, str) and not FORMATS[wanted](value):
            yield f"{place}: {value!r} is no {wanted}"
    except ValueError:
        yield f"{place}: {value!r} is no {wanted}"


def _properties(
    document: Document, wanted: Mapping[str, Schema], value: Any, place: str
) -> Problems:
    for name in wanted.keys() & value.keys() if isinstance(value, dict) else ():
        yield from problems(document, wanted[name], value[name], f"{place}.{name}")


def _others(document: Document, wanted: Schema | bool, value: Any, place: str) -> Problems:  # noqa: FBT001 - So is the keyword.
    if isinstance(wanted, dict):
        for name, member in value.items():
            yield from problems(document, wanted, member, f"{place}.{name}")


def _items(document: Document, wanted: Schema, value: Any, place: str) -> Problems:
    for index, each in enumerate(value if isinstance(value, list) else ()):
        yield from problems(document, wanted, each, f"{place}[{index}]")


def _any_of(document: Document, wanted: list[Schema], value: Any, place: str) -> Problems:
    if not any(_fits(document, each, value) for each in wanted):
        yield f"{place}: {value!r} is none of {wanted}"


def _holds(is_wrong: Callable[[Any, Any], bool], kind: type | tuple[type, ...] = object) -> Any:
    def check(_: Document, wanted: Any, value: Any, place: str) -> Problems:
        if isinstance(value, kind) and is_wrong(wanted, value):
            yield f"{place}: {value!r} breaks {wanted}"

    return check


CHECKS: Mapping[str, Callable[[Document, Any, Any, str], Problems]] = {
    "$ref": _reference,
    "type": _type,
    "format": _format,
    "properties": _properties,
    "additionalProperties": _others,
    "items": _items,
    "anyOf": _any_of,
    "enum": _holds(lambda wanted, value: value not in wanted),
    "const": _holds(lambda wanted, value: value != wanted),
    "pattern": _holds(lambda wanted, value: not re.search(wanted.replace("$", r"\Z"), value), str),
    "minimum": _holds(lambda wanted, value: value < wanted, (int, float)),
    "maximum": _holds(lambda wanted, value: value > wanted, (int, float)),
    "maxLength": _holds(lambda wanted, value: len(value) > wanted, str),
    "minItems": _holds(lambda wanted, value: len(value) < wanted, list),
    "maxItems": _holds(lambda wanted, value: len(value) > wanted, list),
    "minProperties": _holds(lambda wanted, value: len(value) < wanted, dict),
    "uniqueItems": _holds(lambda wanted, value: wanted and len({*value}) < len(value), list),
    "required": _holds(lambda wanted, value: not {*wanted} <= value.keys(), dict),
}
