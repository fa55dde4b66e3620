"""Typed JSON of every event, by msgspec: its bytes are the stored form that golden files pin."""

from functools import cache
from typing import Any, TypedDict, get_type_hints
from uuid import UUID

import msgspec
from eventsourcing.domain import DomainEventProtocol
from eventsourcing.persistence import (
    JSONTranscoder,
    Mapper,
    MapperDeserialisationError,
    StoredEvent,
)
from eventsourcing.utils import get_topic, resolve_topic

COLUMNS = ("originator_id", "originator_version")  # Columns of the log, not part of the state.

_encoder = msgspec.json.Encoder()


@cache
def _decoder(event_class: type) -> msgspec.json.Decoder[dict[str, Any]]:
    """Build the decoder of one event class: its fields as a typed dictionary."""
    fields = {
        name: hint
        for name, hint in get_type_hints(event_class).items()
        if name in event_class.__dataclass_fields__ and name not in COLUMNS  # type: ignore[attr-defined]  # every event class is a dataclass
    }
    shape = TypedDict(event_class.__name__, fields)  # type: ignore[misc]  # made from the class at run time
    return msgspec.json.Decoder(shape)


class MsgspecMapper(Mapper[UUID]):
    """Turns events into stored events and back; an unreadable one raises the library's error."""

    def __init__(self) -> None:
        super().__init__(transcoder=JSONTranscoder())

    def to_stored_event(self, domain_event: DomainEventProtocol[UUID]) -> StoredEvent:
        """Encode the fields in the order of the class; equal events give equal bytes."""
        state = dict(vars(domain_event))
        for column in COLUMNS:
            del state[column]
        version = getattr(type(domain_event), "class_version", 1)
        if version > 1:
            state["class_version"] = version
        return StoredEvent(
            originator_id=domain_event.originator_id,
            originator_version=domain_event.originator_version,
            topic=get_topic(type(domain_event)),
            state=_encoder.encode(state),
        )

    def to_domain_event(self, stored_event: StoredEvent) -> DomainEventProtocol[UUID]:
        """Decode and, for an older version of its class, upcast step by step."""
        event_class = resolve_topic(stored_event.topic)
        try:
            state = _state(event_class, stored_event.state)
        except Exception as error:  # What an upcast meets in broken bytes is anybody's guess.
            place = f"{stored_event.originator_id} version {stored_event.originator_version}"
            message = f"cannot decode {stored_event.topic} of {place}: {type(error).__name__}"
            raise MapperDeserialisationError(message) from error
        state["originator_id"] = stored_event.originator_id
        state["originator_version"] = stored_event.originator_version
        event = object.__new__(event_class)
        object.__setattr__(event, "__dict__", state)
        return event  # type: ignore[no-any-return]  # the topic decides the class


def _state(event_class: type, stored: bytes) -> dict[str, Any]:
    target = getattr(event_class, "class_version", 1)
    decoder = _decoder(event_class)
    if target == 1:
        return decoder.decode(stored)
    raw: dict[str, Any] = msgspec.json.decode(stored)
    for version in range(raw.pop("class_version", 1), target):
        getattr(event_class, f"upcast_v{version}_v{version + 1}")(raw)
    upcast: dict[str, Any] = msgspec.convert(raw, decoder.type)
    return upcast
