"""A shape: what is told of a thing. Its fields are said once, for programs and for people."""

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, Self

import msgspec
from msgspec import UNSET, Struct

from domain.money import format_amount


class Shape(Struct):
    """What is told of one thing; a field that is UNSET is not told."""

    @classmethod
    def of(cls, *sources: object, **given: Any) -> Self:
        """Read each field that is neither given nor optional from the first source that has it.

        It is the attribute of the field's name, perhaps followed by `_id` or `_count`; one that
        ends in `_micros` becomes an amount.
        """
        names = (name for name in _required(cls) if name not in given)
        return cls(**{name: _read(sources, name) for name in names}, **given)

    def facts(self) -> Mapping[str, Any]:
        """Return the fields by name."""
        told = ((name, getattr(self, name)) for name in self.__struct_fields__)
        return {name: value for name, value in told if value is not UNSET}


def amount_of(micros: int | None) -> str | None:
    """Return an amount as it is told; None if there is none."""
    return None if micros is None else format_amount(micros)


@cache
def _required(shape: type[Struct]) -> list[str]:
    return [field.name for field in msgspec.structs.fields(shape) if field.required]


def _read(sources: Sequence[object], name: str) -> Any:
    for source in sources:
        for attribute in (name, f"{name}_id", f"{name}_count"):
            if hasattr(source, attribute):
                return getattr(source, attribute)
        if hasattr(source, f"{name}_micros"):
            return amount_of(getattr(source, f"{name}_micros"))
    raise AttributeError(name)
