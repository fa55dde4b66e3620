"""Typed JSON of every event by msgspec; golden files pin these bytes, which are the stored form.

A field whose default is None is optional: if it is None the bytes leave it out. So bytes that were
written before the field existed still decode, and an event without it has the same bytes as then. A
struct inside an event does the same with `omit_defaults=True`.
"""

from collections.abc import Callable
from dataclasses import fields
from functools import cache, partial
from typing import Any, NotRequired, TypedDict, get_type_hints
from uuid import UUID

import msgspec
from eventsourcing.domain import AggregateEvent, DomainEventProtocol
from eventsourcing.persistence import (
    JSONTranscoder,
    Mapper,
    MapperDeserialisationError,
    StoredEvent,
)
from eventsourcing.utils import TopicError, get_topic

from domain.log.aggregate import class_of

COLUMNS = ("originator_id", "originator_version")  # Columns of the log, not part of the state.

_encode = msgspec.json.Encoder().encode


@cache
def _optional(event_class: type) -> tuple[str, ...]:
    """Name the optional fields."""
    return tuple(each.name for each in fields(event_class) if each.default is None)


@cache
def _decoder(event_class: type) -> msgspec.json.Decoder[dict[str, Any]]:
    """Build the decoder of one event class, which gives its fields as a typed dictionary."""
    hints, optional = get_type_hints(event_class), _optional(event_class)
    members = {
        each.name: NotRequired[hints[each.name]] if each.name in optional else hints[each.name]
        for each in fields(event_class)
        if each.name not in COLUMNS
    }
    members["class_version"] = NotRequired[int]  # Only newer versions of a class have it.
    shape = TypedDict(event_class.__name__, members)  # type: ignore[misc]  # made from the class at run time
    return msgspec.json.Decoder(shape)


class MsgspecMapper(Mapper[UUID]):
    """Turns events into stored events and back; unreadable ones raise the library's error."""

    def __init__(self) -> None:
        super().__init__(transcoder=JSONTranscoder())

    def to_stored_event(self, domain_event: DomainEventProtocol[UUID]) -> StoredEvent:
        """Encode the fields in the order of the class; equal events give equal bytes."""
        kind = type(domain_event)
        state = domain_event.__dict__.copy()
        stream_id, stream_version = state.pop("originator_id"), state.pop("originator_version")
        for name in _optional(kind):
            if state[name] is None:
                del state[name]
        version = getattr(kind, "class_version", 1)
        if version > 1:
            state["class_version"] = version
        return StoredEvent(stream_id, stream_version, get_topic(kind), _encode(state))

    def to_domain_event(self, stored_event: StoredEvent) -> DomainEventProtocol[UUID]:
        """Decode an event; one of an older version is upcast step by step."""
        stream_id, version = stored_event.originator_id, stored_event.originator_version
        return decode(stream_id, version, stored_event.topic, stored_event.state)  # type: ignore[no-any-return]  # topics name events


def decode(stream_id: UUID | str, version: int, topic: str, stored: bytes) -> Any:
    """Decode the event in a row of the log."""
    try:
        event_class, read, optional = _reading(topic)
        state = read(stored)
        if "class_version" in state:
            state = _upcast(event_class, stored)
    except TopicError:
        raise
    except Exception as error:  # On broken bytes an upcast may raise anything.
        place = f"{stream_id} version {version}"
        message = f"cannot decode {topic} of {place}: {type(error).__name__}"
        raise MapperDeserialisationError(message) from error
    for name in optional:
        state.setdefault(name, None)
    state["originator_id"] = stream_id
    state["originator_version"] = version
    event: Any = object.__new__(event_class)
    object.__setattr__(event, "__dict__", state)
    return event


@cache
def _reading(topic: str) -> tuple[type, Callable[[bytes], dict[str, Any]], tuple[str, ...]]:
    """Return the class of a topic, what decodes its state, and its optional fields."""
    kind = class_of(topic, AggregateEvent)
    is_first = getattr(kind, "class_version", 1) == 1
    return kind, _decoder(kind).decode if is_first else partial(_upcast, kind), _optional(kind)


def _upcast(event_class: type, stored: bytes) -> dict[str, Any]:
    """Decode the state of a class that has versions; raises ValueError if this is a later one."""
    target = getattr(event_class, "class_version", 1)
    raw: dict[str, Any] = msgspec.json.decode(stored)
    written = raw.pop("class_version", 1)
    if written > target:
        raise ValueError(f"version {written} of this event is newer than this code")
    for version in range(written, target):
        getattr(event_class, f"upcast_v{version}_v{version + 1}")(raw)
    state: dict[str, Any] = msgspec.convert(raw, _decoder(event_class).type)
    return state
