"""Where the golden files are, and what each of them has to hold."""

from collections.abc import Iterator, Mapping
from pathlib import Path

from domain.aggregates import AGGREGATES
from domain.log.aggregate import Event, Root
from domain.log.mapper import MsgspecMapper
from tests.golden.examples import EVENTS
from tests.golden.later_forms import LATER_FORMS

FOLDER = Path(__file__).parent
EVENTS_FOLDER = FOLDER / "events"


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


def file_name(event_class: type[Event], form: str = "") -> str:
    topic: str = event_class.TOPIC  # type: ignore[attr-defined]  # every stored event has one
    return f"{topic}.{getattr(event_class, 'class_version', 1)}{form and f'+{form}'}.json"


EXAMPLES: Mapping[str, Event] = {
    file_name(type(event), form): event
    for form, event in (*(("", each) for each in EVENTS), *LATER_FORMS)
}


def canonical_files() -> Mapping[Path, bytes]:
    """Return the bytes of every canonical example by the path of its file."""
    mapper = MsgspecMapper()
    return {
        EVENTS_FOLDER / name: mapper.to_stored_event(event).state
        for name, event in EXAMPLES.items()
    }
