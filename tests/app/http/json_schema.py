"""Whether a value is what a schema of the OpenAPI document describes.

Replies may grow, so a schema admits fields that it does not name; these checks do not, because a
field that we send and do not describe is a fault of ours.
"""

import json
from collections.abc import Iterator, Mapping
from functools import reduce
from operator import getitem
from typing import Any

from jsonschema_rs import Draft202012Validator

Schema = Mapping[str, Any]
Document = Mapping[str, Any]

_made: dict[tuple[int, str], Draft202012Validator] = {}
_known: dict[int, tuple[Document, Schema]] = {}


def problems(document: Document, schema: Schema, value: Any, place: str = "") -> Iterator[str]:
    """Say where a value differs from its schema."""
    key = id(document), json.dumps(schema)
    if key not in _made:
        if id(document) not in _known:  # It is kept, or another one could get its id.
            components = {"schemas": _closed(document["components"]["schemas"])}
            _known[id(document)] = document, components
        closed = {**_closed(schema), "components": _known[id(document)][1]}
        _made[key] = Draft202012Validator(closed, validate_formats=True)
    for each in _made[key].iter_errors(value):
        yield f"{place}{each.instance_path}: {each.message}"


def _closed(part: Any) -> Any:
    """Return a part of the document whose objects have no fields but those that are named."""
    if isinstance(part, list):
        return [*map(_closed, part)]
    if not isinstance(part, dict):
        return part
    closed = {name: _closed(each) for name, each in part.items()}
    return {"additionalProperties": False, **closed} if "properties" in part else closed


def resolve(document: Document, part: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return what a part of the document is or refers to."""
    while "$ref" in part:
        _, *names = part["$ref"].split("/")
        part = reduce(getitem, names, document)
    return part
