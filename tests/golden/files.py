"""The stored form of every event that was ever written, each in a file that is never changed.

A class has one, such as `link.activated.1.json`, and beside it one for each of the optional fields
that it has got since: `link.activated.1+cost.json`. The file without a name shows that such a field
is left out where it is None.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import cast
from uuid import UUID

from domain.aggregates import AGGREGATES
from domain.catalogue.plan import Plan
from domain.log.aggregate import Event, Root
from domain.log.mapper import decode

FOLDER = Path(__file__).parent
EVENTS_FOLDER = FOLDER / "events"
STREAM = UUID("22222222-2222-4222-8222-222222222222")
ORGANIZATION = UUID("11111111-1111-4111-8111-111111111111")  # That of each event.


def events_of(kind: type[Root]) -> Iterator[type[Event]]:
    """Find the events of one aggregate, those that others refine included."""
    for each in vars(kind).values():
        if isinstance(each, type) and issubclass(each, Event) and hasattr(each, "TOPIC"):
            yield each


def event_classes() -> set[type[Event]]:
    """Return the events that can be stored: those with a topic that no other event refines."""
    found = {each for kind in AGGREGATES for each in events_of(kind)}
    refined = {base for each in found for base in each.__mro__[1:]}
    return found - refined


def file_name(event_class: type[Event]) -> str:
    """Return the name of the present form without a field that came later."""
    return f"{event_class.TOPIC}.1.json"  # type: ignore[attr-defined]  # every stored event has one


def _read(file: Path) -> Event:
    topic, state = file.name.rsplit(".", 2)[0], file.read_bytes()
    return cast("Event", decode(STREAM, 1 if b'"originator_topic"' in state else 2, topic, state))


EXAMPLES: Mapping[str, Event] = {file.name: _read(file) for file in sorted(EVENTS_FOLDER.iterdir())}
EVENTS = [event for name, event in EXAMPLES.items() if name == file_name(type(event))]
LATER_FORMS = [
    (name.partition("+")[2].removesuffix(".json"), event)
    for name, event in EXAMPLES.items()
    if "+" in name
]
TERMS = next(each.terms for each in EVENTS if isinstance(each, Plan.Published))
