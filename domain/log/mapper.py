"""Typed JSON of every event by msgspec; golden files pin these bytes, which are the stored form.

A field whose default is None is optional: if it is None the bytes leave it out. So bytes that were
written before the field existed still decode, and an event without it has the same bytes as then. A
struct inside an event does the same with `omit_defaults=True`.
"""

from collections.abc import Callable
from functools import cache
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

from domain.log.aggregate import class_of, facts_of

COLUMNS = ("originator_id", "originator_version")  # Columns of the log, not part of the state.

_encode = msgspec.json.Encoder().encode


class MsgspecMapper(Mapper[UUID]):
    """Turns events into stored events and back; unreadable ones raise the library's error."""

    def __init__(self) -> None:
        super().__init__(transcoder=JSONTranscoder())

    def to_stored_event(self, domain_event: DomainEventProtocol[UUID]) -> StoredEvent:
        """Encode the fields in the order of the class; equal events give equal bytes."""
        kind = type(domain_event)
        state = domain_event.__dict__.copy()
        stream_id, stream_version = state.pop("originator_id"), state.pop("originator_version")
        _, optional = facts_of(kind)
        for name in optional:
            if state[name] is None:
                del state[name]
        return StoredEvent(stream_id, stream_version, get_topic(kind), _encode(state))

    def to_domain_event(self, stored_event: StoredEvent) -> DomainEventProtocol[UUID]:
        stream_id, version = stored_event.originator_id, stored_event.originator_version
        return decode(stream_id, version, stored_event.topic, stored_event.state)  # type: ignore[no-any-return]  # topics name events


def decode(stream_id: UUID | str, version: int, topic: str, stored: bytes) -> Any:
    try:
        event_class, read, optional = _reading(topic)
        state = read(stored)
    except TopicError:
        raise
    except Exception as error:  # Broken bytes may raise anything.
        ref = f"{stream_id} version {version}"
        message = f"cannot decode {topic} of {ref}: {type(error).__name__}"
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
    """Return the class of a topic, what decodes its fields into a dictionary, and the optional."""
    kind = class_of(topic, AggregateEvent)
    hints, (names, optional) = get_type_hints(kind), facts_of(kind)
    members = {
        name: NotRequired[hints[name]] if name in optional else hints[name]
        for name in names
        if name not in COLUMNS
    }
    shape = TypedDict(kind.__name__, members)  # type: ignore[misc]  # made from the class at run time
    read: Callable[[bytes], Any] = msgspec.json.Decoder(shape).decode
    return kind, read, optional
