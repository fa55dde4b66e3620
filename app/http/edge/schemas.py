"""What the document says of types: their schemas, and examples put together from their fields'."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import msgspec
from msgspec import NODEFAULT, Struct, inspect

from projections.engine.shape import MORE_MAY_COME, NAME, OR, id_of

OR_EMPTY: Final = {"const": ""}
OF_TYPE = {inspect.IntType: 1, inspect.BoolType: True}


def ref(name: str) -> dict[str, str]:
    return {"$ref": f"#/components/schemas/{name}"}


def schemas_of(replies: Iterable[type[Struct]]) -> dict[str, Any]:
    """Return the schemas of these replies and of all types within them, by name."""
    _, found = msgspec.json.schema_components(replies, ref_template=ref("{name}")["$ref"])
    for schema in found.values():
        del schema["title"]  # It repeats the name.
        constants = [name for name, each in schema["properties"].items() if "default" in each]
        for name in constants:  # They are always sent.
            del schema["properties"][name]["default"]
        schema["required"] = [*constants, *schema["required"]]
    return found


def named(part: Any, schemas: dict[str, Any]) -> Any:
    """Return a part of the document; its named schemas are moved to `schemas` and referred to.

    From an inline enumeration, generators make one type for each place where it stands.
    """
    if isinstance(part, list):
        return [named(each, schemas) for each in part]
    if not isinstance(part, dict):
        return part
    parts = {name: named(each, schemas) for name, each in part.items()}
    if NAME not in parts:
        return parts
    name, others = parts.pop(NAME), parts.pop(OR, [])
    around = {key: parts.pop(key) for key in ("description", "examples", "default") if key in parts}
    if others == [MORE_MAY_COME]:  # Both schemas get names, or generators would make one up.
        schemas[f"Known{name}"] = parts
        parts, others = {"anyOf": [ref(f"Known{name}"), *others]}, []
    schemas[name] = parts
    return around | ({"anyOf": [ref(name), *others]} if others else ref(name))


def example_of(kind: Any, **facts: object) -> Any:
    """Return an example of a type in the form in which it is sent; it has these `facts`.

    What may be absent is there if it is a struct or has an example of its own.
    """
    return _example(inspect.type_info(kind), "", facts)


def _example(kind: inspect.Type, name: str, facts: Mapping[str, object] = {}) -> Any:
    said, kind = _peeled(kind)
    for each in said:
        if shown := each.get("examples") or each.get("enum"):
            return shown[0]
    if isinstance(kind, inspect.StructType):
        fields = (each for each in kind.fields if each.name not in facts and _is_shown(each))
        shown = {each.encode_name: _example(each.type, _named(kind, each)) for each in fields}
        return {**shown, **facts}
    if isinstance(kind, inspect.CollectionType):
        return [_example(kind.item_type, name)]
    if isinstance(kind, inspect.UUIDType):
        return id_of(name)
    assert type(kind) in OF_TYPE, f"The field {name} needs an example."
    return OF_TYPE[type(kind)]


def _peeled(kind: inspect.Type) -> tuple[Sequence[Mapping[str, Any]], inspect.Type]:
    """Return what is said of a type, the outermost first, and what its values are."""
    said = []
    while isinstance(kind, inspect.Metadata | inspect.UnionType):
        if isinstance(kind, inspect.Metadata):
            said.append(kind.extra_json_schema or {})
            kind = kind.type
        else:
            kind = next(each for each in kind.types if not isinstance(each, inspect.NoneType))
    return said, kind


def _is_shown(field: inspect.Field) -> bool:
    said, kind = _peeled(field.type)
    has_own = isinstance(kind, inspect.StructType) or any("examples" in each for each in said[:1])
    return has_own or field.required or field.default is not NODEFAULT


def _named(kind: inspect.StructType, field: inspect.Field) -> str:
    """Return what a field is the id of: `plan_id` of a plan, `id` of what its class is called."""
    if field.name != "id":
        return field.name.removesuffix("_id")
    return next(each.__name__.lower() for each in kind.cls.__mro__ if "id" in each.__annotations__)
