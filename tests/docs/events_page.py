"""Writes docs/verifier/events.md from the event classes: `python -m tests.docs.events_page`.

The page has each event for which the verifier has a rule, so a new rule needs it written anew. By
hand is written what stands before the list of events, and what each field is, in the last table.
"""

import re
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields
from datetime import date, datetime
from itertools import chain
from textwrap import fill
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints
from uuid import UUID

import msgspec

import domain.aggregates  # noqa: F401  # Makes every topic known.
from domain.log.aggregate import Event, class_of
from domain.log.mapper import COLUMNS
from tests.docs.verifier import verify
from tests.tidy.source import ROOT

PAGE = ROOT / "docs" / "verifier" / "events.md"
EVERYWHERE = ("timestamp", "request_id", "originator_topic", "actor")
PLAIN = {UUID: "id", int: "integer", str: "text", bool: "boolean", bytes: "bytes"}
PLAIN |= {datetime: "time", date: "date"}
# Whose events say who may do what, and what takes two.
PEOPLE = ("proposal.", "approval_limit.", "operator", "organization.", "api_client.")
BEGIN = "## Events\n"  # What stands before it is written by hand.
STRUCTS = "\n## What stands in them\n"
FIELDS = "\n## Fields\n\n| Field | Type | Is |\n|---|---|---|"
MEANING = re.compile(r"^\| `(\w+)` \| .+ \| ([^|]+) \|$", re.MULTILINE)


def page() -> str:
    """Return the page as it should be; "?" is what nobody has said of a new field."""
    written = PAGE.read_text("utf-8")
    by_hand = written.partition(BEGIN)[0]
    is_what = dict(MEANING.findall(written.partition(FIELDS)[2]))
    found: dict[str, type[Any]] = {}
    topics = sorted({*verify.RULES, *(each for each in verify.JUDGED if each.startswith(PEOPLE))})
    told = events = {f"`{topic}`": _told(class_of(topic, Event), found) for topic in topics}
    while left := sorted(found.keys() - told.keys()):
        told = told | {name: _told(found[name], found) for name in left}
    types: dict[str, Counter[str]] = defaultdict(Counter)
    for name, kind in chain.from_iterable(told.values()):
        types[name.rstrip("?")][kind] += 1
    usual = {name: of.most_common(1)[0][0] for name, of in sorted(types.items())}
    structs = {name: told[name] for name in sorted(found)}
    shown = {name: kind for name, kind in usual.items() if name in is_what or kind != _named(name)}
    meant = [f"| `{name}` | {kind} | {is_what.get(name, '?')} |" for name, kind in shown.items()]
    parts = ["", *_rows(events, usual), STRUCTS, *_rows(structs, usual), FIELDS, *meant, ""]
    return by_hand + BEGIN + "\n".join(parts)


def _rows(told: Mapping[str, Sequence[tuple[str, str]]], usual: Mapping[str, str]) -> list[str]:
    """Return the rows of events or structs; those that have the same fields share one."""
    alike = defaultdict[str, list[str]](list)
    for name, members in told.items():
        alike[_shown(members, usual)].append(name)
    rows = (f"- {', '.join(names)}: {shown}" for shown, names in alike.items())
    return [fill(row, 120, subsequent_indent="  ") for row in rows]


def _named(field: str) -> str:
    """Return the type that the name of a field says by itself; it then needs no row."""
    ends = {"_micros": "integer", "count": "integer", "_mb": "integer", "_days": "integer"}
    ends |= {"_id": "id", "_at": "time"}
    return next((kind for end, kind in ends.items() if field.endswith(end)), "text")


def _shown(members: Sequence[tuple[str, str]], usual: Mapping[str, str]) -> str:
    shown = []
    for told, kind in members:
        name, mark, _ = told.partition("?")
        shown.append(f"`{name}`{mark}" + (f" ({kind})" if kind != usual[name] else ""))
    return ", ".join(shown) or "no more"


def streams() -> Iterator[str]:
    """Yield the rows of the streams whose ids are derived, which the part by hand must have."""
    alike = defaultdict[str, list[str]](list)
    for topic, (kind, *names) in verify.STREAMS.items():
        first = "KIND" if kind == topic.partition(".")[0] else f'"{kind}"'
        alike[", ".join([first, *names])].append(f"`{topic}`")
    for parts, topics in alike.items():
        yield f"| stream of {', '.join(topics)} | `derived({parts})` |\n"


def rights() -> Iterator[str]:
    """Yield the row of each right, which the part by hand must have."""
    acts = {right: [] for right in verify.ACTS.values()}
    for act, right in verify.ACTS.items():
        acts[right].append(act)
    for right in ("money", "approve", "catalogue", "keys", "audit"):
        alone, shared = verify.RIGHTS.get(right, ""), verify.BY_OTHERS_TOO.get(right, "")
        cells = (alone.split(), shared.split(), acts.get(right, []))
        told = (", ".join(f"`{each}`" for each in sorted(cell)) for cell in cells)
        yield f"| `{right}` | {' | '.join(told)} |\n"


def _told(kind: type[Any], found: dict[str, type[Any]]) -> list[tuple[str, str]]:
    """Return each field with its type; one that may be left out has a `?` behind its name."""
    told, hints = [], get_type_hints(kind)
    if issubclass(kind, msgspec.Struct):
        omits = kind.__struct_config__.omit_defaults
        members = [(e.name, omits and not e.required) for e in msgspec.structs.fields(kind)]
    else:
        others = (*COLUMNS, *EVERYWHERE)
        members = [(e.name, e.default is None) for e in fields(kind) if e.name not in others]
    for name, optional in members:
        told.append((name + "?" * optional, _type(hints[name], found, or_null=not optional)))
    return told


def _type(hint: Any, found: dict[str, type[Any]], *, or_null: bool = True) -> str:
    """Name a type as the page does; remember structs, which stand below the events."""
    origin, arguments = get_origin(hint), get_args(hint)
    if origin in {Union, UnionType}:
        named = [_type(each, found) for each in arguments if each is not NoneType]
        return " or ".join([*named, *(["null"] if or_null and NoneType in arguments else [])])
    if origin is Literal:
        return ", ".join(f"`{each}`" for each in arguments)
    if origin is list:
        return f"list of {_type(arguments[0], found)}"
    if origin is dict:
        return "object"
    if isinstance(hint, type) and issubclass(hint, msgspec.Struct):
        found[hint.__name__] = hint
        return hint.__name__
    return PLAIN[hint]


def main() -> None:
    PAGE.write_text(page(), "utf-8")
    sys.stdout.write(f"{PAGE}\n")


if __name__ == "__main__":
    main()
