"""One application, one log: every aggregate is loaded from it and appended to it here."""

import logging
import time
from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from functools import cache, lru_cache
from itertools import takewhile
from threading import Lock
from typing import Any, NamedTuple, TypeVar
from uuid import UUID

from eventsourcing.application import Application
from eventsourcing.domain import EventSourcingError
from eventsourcing.persistence import (
    IntegrityError,
    Mapper,
    OperationalError,
    PersistenceError,
    StoredEvent,
)
from eventsourcing.utils import Environment, EnvType, TopicError, get_topic, resolve_topic

from domain.at_once import may_wait
from domain.cause import Cause, utc_now
from domain.errors import Conflict, NotFound, ServiceUnavailable
from domain.log.aggregate import Event, LoadedFromNewest, Root
from domain.log.discontinuity import Discontinuity
from domain.log.mapper import MsgspecMapper, decode
from domain.log.signal import Signal, digits_of

MEET_AGAIN_S = 1.0  # After a server that could not be told what it has lost.
SCAN_EVENTS = 100_000  # Of one statement; so many rows stay far below its time-out.

R = TypeVar("R", bound=Root)
LogRow = Sequence[Any]  # Position, stream id (perhaps as text), version, topic, state.

logger = logging.getLogger(__name__)


class NothingInserted(OperationalError):
    """Raised by a recorder that knows for certain that it has inserted nothing (a full disk)."""


class OtherLog(IntegrityError):
    """Raised when nothing was inserted, for the events were decided on another log than this.

    The server is not the one that was read, or it lacks an event before them: both happen when a
    failover loses commits. What is remembered of the log has to be read anew.
    """


class Poisoned(Exception):
    """Raised when an event of the log cannot be decoded; nothing after it may be followed."""

    def __init__(self, position: int, reason: str) -> None:
        super().__init__(f"event at position {position}: {reason}")
        self.position = position
        self.reason = reason


class Place(NamedTuple):
    """Where an event stands in the log, and which one it is.

    Positions rise strictly, perhaps with gaps. A restored log has another event in the same place.
    """

    position: int
    stream_id: UUID
    stream_version: int


class Recorded(NamedTuple):
    """An event with its position."""

    position: int
    event: Event

    @property
    def place(self) -> Place:
        """Where it stands."""
        return Place(self.position, self.event.originator_id, self.event.originator_version)


@dataclass(frozen=True, slots=True)
class Stretch:
    """A part of the log as a follower needs it."""

    events: Sequence[Recorded]  # Of the topics that it uses.
    count: int  # Of all events of it.
    last: Place | None  # Where its last event stands; None when there is none.
    is_whole: bool  # False: an event that cannot be decoded comes next.


class Log(Application[UUID]):
    """The append-only event log, the only truth.

    `aggregates` are all kinds that streams may be of: a topic resolves once its class is imported.
    Errors of the database surface as ServiceUnavailable (the outcome may be unknown) or as
    Conflict (another writer was first and nothing was appended).
    """

    name = "log"

    def __init__(self, env: EnvType, aggregates: Sequence[type[Root]]) -> None:
        super().__init__(env)
        self.aggregates = aggregates
        self.appended = Signal()
        self.observer: Callable[[Sequence[StoredEvent]], None] = _unobserved  # Must not raise.
        self.server: str | None = None  # Which has answered last, to whatever thread.
        self._seen = 0  # The highest position that this process knows of.
        self._meeting = Lock()
        self._meet_at = 0.0  # On the monotonic clock: not before.
        self._untold = ""  # The server that could not be told of a loss, which is said once.

    def construct_env(self, name: str, env: EnvType | None = None) -> Environment:
        """Use exactly the given settings: the library would also read the process environment."""
        return Environment(name, dict(env or {}))

    def construct_mapper(self) -> Mapper[UUID]:
        """Store every event as typed JSON, from the first one on."""
        return MsgspecMapper()

    def find(self, kind: type[R], stream_id: UUID, *, after: R | None = None) -> R | None:
        """Load an aggregate, or bring `after` up to date; None when the stream is empty."""
        version = after.version if after is not None else None
        newest = issubclass(kind, LoadedFromNewest)
        events = self._events_of(stream_id, version, newest=1 if newest else None)
        server = self.answered()
        if after is not None and after.read_from != server:
            return self.find(kind, stream_id)  # What another server knew may not be known here.
        aggregate = _after_newest(kind, events, after) if newest else replay(events, after)
        if aggregate is None or not isinstance(aggregate, kind):
            return None  # An id that a caller made up may name a stream of another kind.
        aggregate.read_from = server
        return aggregate

    def get(self, kind: type[R], stream_id: UUID) -> R:
        """Load an aggregate that has to exist; raises NotFound."""
        aggregate = self.find(kind, stream_id)
        if aggregate is None:
            raise NotFound
        return aggregate

    def history(self, stream_id: UUID) -> Sequence[Event]:
        """Return every event of a stream, in order; none for a stream that is not there."""
        return [*self._events_of(stream_id, None)]

    def append(self, *aggregates: Root) -> int:
        """Append the new events of aggregates that touch no wallet; return the last position.

        Raises Conflict when one of the streams has moved on meanwhile.
        """
        return self._append(aggregates, self.insert_once)

    def decided_on(self, aggregates: Iterable[Root]) -> frozenset[str]:
        """Return the servers that aggregates were decided on; what is new, on that of today."""
        servers = {each.read_from or self.server for each in aggregates}
        return frozenset(each for each in servers if each is not None)

    def claim(self, aggregate: Root) -> int:
        """Append an intent, which one alone may win; otherwise as `append`.

        Two who state the same within one microsecond state the same bytes, so what looks like the
        echo of our own commit may be another's: it is a Conflict, and nobody acts on the intent.
        """
        return self._append([aggregate], self.insert)

    def _append(
        self,
        aggregates: Sequence[Root],
        insert: Callable[[Sequence[StoredEvent], Collection[str]], int],
    ) -> int:
        may_wait()
        events = [event for aggregate in aggregates for event in aggregate.collect_events()]
        stored = [self.mapper.to_stored_event(event) for event in events]
        try:
            position = insert(stored, self.decided_on(aggregates))
        except OtherLog as error:
            self.answered()  # Who only appends would never know of it.
            raise outdated(stored) from error
        except IntegrityError:
            raise Conflict(events[0].originator_id) from None
        except PersistenceError as error:
            raise ServiceUnavailable from error
        for aggregate in aggregates:
            aggregate.read_from = self.answered()
        return position

    def insert_once(self, stored: Sequence[StoredEvent], servers: Collection[str] = ()) -> int:
        """Insert, and take the echo of our own commit for what it is; raises as is."""
        try:
            return self.insert(stored, servers)
        except IntegrityError:
            if self.holds(stored):  # The echo of our own commit after a lost connection.
                self._tell(stored)
                return self.recorder.max_notification_id() or 0
            raise

    def insert(self, stored: Sequence[StoredEvent], servers: Collection[str] = ()) -> int:
        """Insert stored events in one transaction; return the last position. Raises as is.

        `servers` are those that the events were decided on: OtherLog where this is another one.
        """
        positions = self.recorder.insert_events(stored, servers=servers)
        self._tell(stored)
        return self._see(positions[-1] if positions else 0)

    def _tell(self, stored: Sequence[StoredEvent]) -> None:
        self.appended.call(with_news(stored))
        self.observer(stored)

    def holds(self, stored: Sequence[StoredEvent]) -> bool:
        """Tell whether exactly these events are in the log, all of them. Raises as is."""
        return all(
            (found := self._at_version(event))
            and (found[0].topic, bytes(found[0].state)) == (event.topic, event.state)
            for event in stored
        )

    def begun(self, streams: Collection[UUID | str]) -> set[UUID | str]:
        """Return which of these streams have a first event, in one statement."""
        try:
            found: set[UUID | str] = self.recorder.select_begun(streams)  # type: ignore[attr-defined]  # Ours have this.
        except PersistenceError as error:
            raise ServiceUnavailable from error
        return found

    def has_version(self, event: StoredEvent) -> bool:
        """Tell whether the place of an event in its stream is taken."""
        try:
            return bool(self._at_version(event))
        except PersistenceError as error:
            raise ServiceUnavailable from error

    def _at_version(self, event: StoredEvent) -> Sequence[StoredEvent]:
        version = event.originator_version
        return self.recorder.select_events(event.originator_id, gt=version - 1, lte=version)

    def read(self, after: int, limit: int) -> list[Recorded]:
        """Return the next events after a position, in order, up to one that cannot be decoded.

        Raises Poisoned when the very next event is that one.
        """
        return [*self.follow(after, limit).events]

    def follow(
        self,
        after: int,
        limit: int,
        unused: frozenset[str] = frozenset(),
        until: int | None = None,
    ) -> Stretch:
        """Read on as `read` does, at most up to a position.

        What is of unused topics is passed without a look. An unknown topic is not one of them:
        it may be of use to whoever knows it.
        """
        try:
            rows = self.recorder.select_rows(after, limit, unused)  # type: ignore[attr-defined]  # Ours have this.
        except PersistenceError as error:
            raise ServiceUnavailable from error
        if until is not None:
            rows = [row for row in rows if row[0] <= until]
        events: list[Recorded] = []
        for passed, (position, stream, version, topic, state) in enumerate(rows):
            try:
                if topic not in unused:
                    events.append(Recorded(position, decode(_id(stream), version, topic, state)))
                elif passed + 1 == len(rows):
                    _id(stream)  # Which names the place where the stretch ends.
            except (EventSourcingError, TopicError, ValueError) as error:
                if not passed:
                    raise Poisoned(position, str(error)) from error
                return self._stretch(events, rows[:passed], is_whole=False)
        return self._stretch(events, rows, is_whole=True)

    def _stretch(
        self, events: Sequence[Recorded], rows: Sequence[LogRow], *, is_whole: bool
    ) -> Stretch:
        last = None
        if rows:
            position, stream, version, *_ = rows[-1]
            last = Place(position, _id(stream), version)
        self._see(last.position if last is not None else 0)
        return Stretch(events, len(rows), last, is_whole)

    def first(self, *kinds: type[Event]) -> Event | None:
        """Return the oldest event of some kinds. It scans: ask for what comes early, or seldom."""
        topics = [get_topic(each) for each in kinds]
        select, after = self.recorder.select_notifications, 0
        try:
            while following := select(after, 1, inclusive_of_start=False):
                start = following[0].id  # There may be a wide gap before it.
                found = select(start, 1, start + SCAN_EVENTS, topics)
                if found:
                    return self.mapper.to_domain_event(found[0])  # type: ignore[return-value]  # topics name our events only
                after = start + SCAN_EVENTS
        except PersistenceError as error:
            raise ServiceUnavailable from error
        return None

    def head(self) -> int:
        """Return the position of the newest event, 0 for an empty log."""
        try:
            return self._see(self.recorder.max_notification_id() or 0)
        except PersistenceError as error:
            raise ServiceUnavailable from error

    def _see(self, position: int) -> int:
        if self.answered() == self.server:  # Else what the one before had seen is still compared.
            self._seen = max(self._seen, position)
        return position

    def answered(self) -> str:
        """Return the server that has answered this thread; "" where there is only one."""
        server: str = getattr(self.recorder, "server", _the_only_one)()
        if server != self.server:
            self._meet(server)
        return server

    def _meet(self, server: str) -> None:
        """Go on with another server; what it has lost of what was seen is a fact of the log.

        A standby cannot be told: it is tried seldom, for each try costs new sessions.
        """
        if time.monotonic() < self._meet_at or not self._meeting.acquire(blocking=False):
            return  # It has just failed, or another thread is at it.
        try:
            if self.server is not None:
                self._note_loss(server)
                logger.warning("the log is on another server now: %s", server)
            self.server, self._meet_at, self._untold = server, 0.0, ""
        except PersistenceError:
            self._meet_at = time.monotonic() + MEET_AGAIN_S
            if self._untold != server:
                logger.warning(
                    "the log answers from %s; what it has lost is looked for again",
                    server,
                    exc_info=True,
                )
            self._untold = server
        finally:
            self._meeting.release()

    def _note_loss(self, server: str) -> None:
        seen = self._seen
        last: int = self.recorder.last_position_up_to(seen)  # type: ignore[attr-defined]  # Who has several servers has this.
        if last == seen:
            return
        cause = Cause(utc_now(), "failover")
        lost = Discontinuity.notice(server, last, seen, cause)
        stored = [self.mapper.to_stored_event(event) for event in lost.collect_events()]
        with suppress(IntegrityError):  # Somebody else has noticed.
            self.recorder.insert_events(stored)
            logger.error("the log has lost events after position %d, up to %d", last, seen)
            self._tell(stored)

    def given(self) -> int:
        """Return the newest position that was ever given out, where the database remembers it.

        More than `head` means that events were cut off the end of the log.
        """
        remembered: int = getattr(self.recorder, "newest_position_given", self.head)()
        return remembered

    def _events_of(
        self, stream_id: UUID, after_version: int | None, *, newest: int | None = None
    ) -> Iterable[Event]:
        """Return all events in order, or so many of the newest ones, the very newest first."""
        may_wait()
        backwards = newest is not None
        try:
            stored = self.recorder.select_events(
                stream_id, gt=after_version, desc=backwards, limit=newest
            )
        except PersistenceError as error:
            raise ServiceUnavailable from error
        decode = self.mapper.to_domain_event
        return [decode(each) for each in stored]  # type: ignore[misc]  # topics name our events only


@lru_cache(maxsize=1_024)  # Of wallets, which have most of the events.
def _id_of_text(text: str) -> UUID:
    return UUID(text)


def _id(stream: UUID | str) -> UUID:
    return stream if isinstance(stream, UUID) else _id_of_text(stream)


def _unobserved(_: Sequence[StoredEvent]) -> None:
    """Nobody counts."""


def _the_only_one() -> str:
    return ""


def with_news(stored: Iterable[StoredEvent]) -> set[str]:
    """Return the streams of a commit that somebody may wait for: steps alone are no news."""
    return {digits_of(event.originator_id) for event in stored if not _is_step(event.topic)}


@cache
def _is_step(topic: str) -> bool:
    """Tell whether an event is only on the way; one of a kind not known here may be an outcome."""
    try:
        kind: type[Event] = resolve_topic(topic)
    except TopicError:
        return False
    return kind.IS_STEP


def outdated(stored: Iterable[StoredEvent]) -> Conflict | ServiceUnavailable:
    """Return what to raise for events that were decided on another log, so were not inserted.

    Whoever has read a stream reads it again; who begins one has only to be asked again.
    """
    for event in stored:
        if event.originator_version > 1 and isinstance(event.originator_id, UUID):
            return Conflict(event.originator_id)
    return ServiceUnavailable()


def predecessors(stored: Iterable[StoredEvent]) -> dict[UUID | str, int]:
    """Return the version before the first of each stream that these events do not begin."""
    before: dict[UUID | str, int] = {}
    for event in stored:
        version = event.originator_version - 1
        if version < before.get(event.originator_id, event.originator_version):
            before[event.originator_id] = version
    return {stream: version for stream, version in before.items() if version > 0}


def _after_newest(kind: type[Root], events: Iterable[Event], known: Root | None) -> Any:
    assert issubclass(kind, LoadedFromNewest), kind
    for event in events:
        return kind.after(event) if isinstance(event, kind.Event) else None
    return known


def replay(events: Iterable[Event], aggregate: R | None = None) -> R | None:
    """Apply events in order. The library's own projector checks a runtime Protocol each time."""
    for event in events:
        aggregate = event.mutate(aggregate)
    return aggregate


def as_of(kind: type[R], history: Iterable[Event], moment: datetime) -> R | None:
    """Replay a stream up to and with a moment; None before its first event.

    What a clock set back stamped as earlier than the event before it goes with that event.
    """
    aggregate: R | None = replay(takewhile(lambda event: event.timestamp <= moment, history))
    return aggregate if isinstance(aggregate, kind) else None
