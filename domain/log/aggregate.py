"""The base classes of aggregates and events, and which class a topic of the log names.

This is the only place where an event is made.
"""

from collections.abc import Container, Iterator, Mapping
from dataclasses import field, fields
from functools import cache
from operator import attrgetter
from typing import Any, ClassVar, Self, TypeVar
from uuid import UUID

from eventsourcing.domain import AggregateCreated, AggregateEvent, BaseAggregate
from eventsourcing.utils import TopicError, get_topic

from domain.cause import Cause
from domain.ids import derive_id

E = TypeVar("E", bound="Event")


@cache
def class_of(topic: str, base: type[Any]) -> Any:
    """Return the loaded class of ours below `base` that has this topic; raises TopicError.

    The library would import any module that a topic names, and a log may be somebody else's export.
    """
    named = [kind for kind in kinds_below(base) if getattr(kind, "TOPIC", None) == topic]
    if not named:
        raise TopicError(f"the topic {topic!r} is not known here")
    return named[-1]  # The library may derive a class of its own from ours, and then uses that.


def kinds_below(base: type[Any]) -> Iterator[type[Any]]:
    """Yield all classes below a class, those below these too."""
    for kind in base.__subclasses__():
        yield kind
        yield from kinds_below(kind)


def sets(*facts: str, **values: Any) -> Mapping[str, Any]:
    """Name what an event sets: attributes that have the names of `facts`, and others by `values`.

    A value is as it stands, or a function of the event: `fact`, or `itself`.
    """
    return {**{name: fact(name) for name in facts}, **values}


fact = attrgetter


def itself(event: Any) -> Any:
    return event


class _Something:
    def __contains__(self, value: object) -> bool:
        return value is not None


NOTHING, SOMETHING, TRUE = (None,), _Something(), (True,)


class Event(AggregateEvent):
    """A fact of the past. Each concrete event has a `TOPIC` that stays when the class is renamed.

    An event carries everything that its decision used, so replay asks nobody. `request_id` names
    the request that caused it. `SETS` is what it changes of its aggregate; only an event that does
    more than set attributes has an `apply` of its own.
    """

    SETS: ClassVar[Mapping[str, Any]] = {}
    # True for an event that no other thread waits for: a step on the way to an outcome, or an
    # outcome that its writer reports itself. Such an event wakes nobody.
    IS_STEP: ClassVar[bool] = False

    request_id: str

    def apply(self, aggregate: Any) -> None:
        """Assign what the event changes; it asks and refuses nothing."""
        for name, value in self.SETS.items():
            setattr(aggregate, name, value(self) if callable(value) else value)


class Created(Event, AggregateCreated):
    """The first event of a stream."""

    def mutate(self, aggregate: Any) -> Any:
        """Make the aggregate; the library's own way inspects signatures each time."""
        assert aggregate is None
        kind: type[Root] = class_of(self.originator_topic, Root)
        return kind.started_by(self)


class ByOperator(Event):
    """An event that an operator's command may cause; `actor` says who ran it, None: no operator.

    Wallet entries are not among these, because partners may see their bytes.
    """

    actor: str | None = field(default=None, kw_only=True)


class Root(BaseAggregate[UUID]):
    """An aggregate: public methods decide and may refuse, events only assign.

    `eventsourcing.domain.Aggregate` would give every child a `Created` event without a topic of its
    own, so the library's base class is used.
    """

    # What each of its events carries of it, by name.
    OWN: ClassVar[tuple[str, ...]] = ()
    # What may follow what: for a facet (an attribute) and an event, the values that it may have.
    STAGES: ClassVar[Mapping[str, Mapping[type[Any], Container[Any]]]] = {}

    class Event(Event):
        """The events of this aggregate."""

    @classmethod
    def id_of(cls, *names: object) -> UUID:
        """Return the stream of this kind that is named by facts, so that it begins only once."""
        return derive_id(get_topic(cls), *names)

    @classmethod
    def started_by(cls, event: Created) -> Self:
        """Make an aggregate from its first event, which assigns what has no default."""
        made = object.__new__(cls)
        made.__base_init__(event.originator_id, event.originator_version, event.timestamp)
        event.apply(made)
        return made

    @classmethod
    def begin(cls, event: type[Created], cause: Cause, stream_id: UUID, **facts: Any) -> Self:
        first = _new(event, cause, stream_id, 1, originator_topic=get_topic(cls), **facts)
        made = cls.started_by(first)
        made.pending_events.append(first)
        return made

    def may_record(self, event: type[Event]) -> bool:
        """Tell whether an event may come now, by `STAGES`."""
        return all(
            event not in may or getattr(self, facet) in may[event]
            for facet, may in self.STAGES.items()
        )

    def record(self, event: type[Event], cause: Cause, **facts: Any) -> None:
        """Append the next event and apply it; one in a wrong order is our bug."""
        assert self.may_record(event), event
        for name in self.OWN:
            facts.setdefault(name, getattr(self, name))
        version = self.version + 1
        following = _new(event, cause, self.id, version, **facts)
        following.apply(self)
        self.version, self.modified_on = version, cause.at
        self.pending_events.append(following)


class LoadedFromNewest(Root):
    """An aggregate whose every event holds its whole state, so that the newest event is enough.

    It loads from one row, however long its stream is.
    """

    @classmethod
    def after(cls, event: Any) -> Self:
        """Return the aggregate after this event, which carries its `OWN` and sets the rest."""
        found = object.__new__(cls)
        found.__base_init__(event.originator_id, event.originator_version, event.timestamp)
        for name in cls.OWN:
            setattr(found, name, getattr(event, name))
        event.apply(found)
        return found


def _new(event: type[E], cause: Cause, stream_id: UUID, version: int, **facts: Any) -> E:
    """Make an event from all its facts.

    They are put into the order of the fields of its class, in which they are stored. This bypasses
    the constructor, which assigns the fields one by one: that took most of the time of a charge.
    """
    facts["originator_id"], facts["originator_version"] = stream_id, version
    facts["timestamp"], facts["request_id"] = cause.at, cause.request_id
    names, optional = facts_of(event)
    for name in optional:
        facts.setdefault(name, None)
    if cause.actor is not None and "actor" in optional:
        facts["actor"] = cause.actor
    assert len(facts) == len(names), f"{event.__qualname__} is made of {names}"
    made = object.__new__(event)
    object.__setattr__(made, "__dict__", {name: facts[name] for name in names})
    return made


@cache
def facts_of(event: type[Any]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Name the facts of an event, and those among them that are optional."""
    found = fields(event)
    return tuple(e.name for e in found), tuple(e.name for e in found if e.default is None)
