"""The log: every aggregate is loaded from it and appended to it here."""

import logging
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache, partial, wraps
from itertools import chain, takewhile
from typing import Any, NamedTuple, ParamSpec, TypeVar
from uuid import UUID

import msgspec
from eventsourcing.application import Application
from eventsourcing.domain import EventSourcingError
from eventsourcing.persistence import (
    IntegrityError,
    Mapper,
    MapperDeserialisationError,
    OperationalError,
    PersistenceError,
    StoredEvent,
)
from eventsourcing.utils import Environment, EnvType, TopicError, get_topic

from domain.blocking import may_block
from domain.cause import Cause, utc_now
from domain.errors import Conflict, NotFound, ServiceUnavailable
from domain.ids import as_id
from domain.log.aggregate import Event, LoadedFromNewest, Root, class_of
from domain.log.discontinuity import Discontinuity
from domain.log.mapper import MsgspecMapper, decode
from domain.log.signal import Signal, digits_of

SCAN_EVENTS = 100_000  # Events per statement; reading so many takes far less than its time-out.
PART_EVENTS = 1_000  # Of one stream per statement.
RACES_MAX = 50  # Lost in a row. Each one means that another writer won, so there is progress.
CONTESTED = "Others keep changing the same thing; try again."

R = TypeVar("R", bound=Root)
T = TypeVar("T")
N = TypeVar("N", bound=LoadedFromNewest)
P = ParamSpec("P")
Insert = Callable[[Sequence[StoredEvent]], Sequence[int] | None]
Around = Callable[[Insert, Sequence[StoredEvent]], Sequence[int] | None]
LogRow = Sequence[Any]  # Position, stream id (perhaps as text), version, topic, state.

logger = logging.getLogger(__name__)


class NothingInserted(OperationalError):
    """Raised by a recorder that is certain to have inserted nothing, such as on a full disk."""


class EventsGone(IntegrityError):
    """Raised when nothing was inserted, because the event before is not in the log any more.

    A failover that loses commits causes it. What this process remembers of the log is of no use.
    """


class Poisoned(Exception):
    """Raised when an event of the log cannot be decoded; nothing after it may be followed."""

    def __init__(self, position: int, reason: str) -> None:
        super().__init__(f"event at position {position}: {reason}")
        self.position = position
        self.reason = reason


# What is raised for an event that cannot be decoded, such as one of a newer release.
UNREADABLE = (Poisoned, TopicError, MapperDeserialisationError)


class EventRef(NamedTuple):
    """Where an event is in the log, and which event it is.

    Positions rise, perhaps with gaps. A restored log may have another event at the same position.
    """

    position: int
    stream_id: UUID
    stream_version: int


class Recorded(NamedTuple):
    """An event with its position."""

    position: int
    event: Event

    @property
    def ref(self) -> EventRef:
        return EventRef(self.position, self.event.originator_id, self.event.originator_version)


class Stored(NamedTuple):
    """A row of the log: an event as it is stored, not decoded."""

    position: int
    stream_id: UUID
    version: int
    topic: str
    state: bytes

    @property
    def ref(self) -> EventRef:
        return EventRef(self.position, self.stream_id, self.version)

    @property
    def timestamp(self) -> datetime:
        """The moment of the event; that of bytes that nobody can read is before all others."""
        try:
            return msgspec.json.decode(self.state, type=_Stamped).timestamp
        except msgspec.MsgspecError:
            return datetime.min.replace(tzinfo=UTC)


class _Stamped(msgspec.Struct):
    timestamp: datetime


@dataclass(frozen=True, slots=True)
class Stretch:
    """A part of the log, as a follower needs it."""

    events: Sequence[Recorded]  # Of the topics that are used.
    count: int  # The number of all its events.
    last: EventRef | None  # The place of its last event; None when there is none.
    is_whole: bool  # False: the next event cannot be decoded.


class Log(Application[UUID]):
    """The append-only event log, the only truth.

    `aggregates` are all kinds of streams; the topics of a kind are known once its class is
    imported. Errors of the database are raised as ServiceUnavailable (the outcome may be unknown)
    or as Conflict (another writer was first and nothing was appended).
    """

    name = "log"

    def __init__(self, env: EnvType, aggregates: Sequence[type[Root]]) -> None:
        super().__init__(env)
        self.aggregates = aggregates
        self.appended = Signal()
        self.observer: Callable[[Sequence[StoredEvent]], None] = lambda _: None  # Must not raise.
        self.around: Around = lambda insert, stored: insert(stored)  # Calls; raises nothing else.
        self.seen = 0  # The highest position that this process has seen.
        self._has_lost = False  # An event that was read before is gone.

    def construct_env(self, name: str, env: EnvType | None = None) -> Environment:
        """Use only the given settings; the library would also read the process's environment."""
        return Environment(name, dict(env or {}))

    def construct_mapper(self) -> Mapper[UUID]:
        return MsgspecMapper()

    def find(self, kind: type[R], stream_id: UUID, *, after: R | None = None) -> R | None:
        """Load an aggregate, or bring `after` up to date; None when the stream is empty."""
        if issubclass(kind, LoadedFromNewest):
            return self.find_all(kind, [stream_id]).get(stream_id)
        aggregate = after
        for events in self._parts_of(stream_id, after.version if after is not None else None):
            aggregate = replay(events, aggregate)
            if not isinstance(aggregate, kind):  # A caller's id may name a stream of another kind.
                return None
        return aggregate

    def find_all(self, kind: type[N], stream_ids: Collection[UUID]) -> dict[UUID, N]:
        """Load several aggregates in one statement; those that do not exist are left out."""
        found = {}
        for stored in self.newest(stream_ids):
            event = self.mapper.to_domain_event(stored)
            if isinstance(event, kind.Event):
                found[event.originator_id] = kind.after(event)
        return found

    def get(self, kind: type[R], stream_id: UUID, called: str = "") -> R:
        """Load an aggregate that must exist; raises NotFound, which says what it is `called`."""
        aggregate = self.find(kind, stream_id)
        if aggregate is None:
            raise NotFound(f"there is no {called}" if called else "")
        return aggregate

    def history(self, stream_id: UUID, up_to_version: int | None = None) -> Sequence[Event]:
        """Return every event of a stream in order; none if the stream does not exist."""
        return [*chain.from_iterable(self._parts_of(stream_id, None, up_to_version))]

    def newest_first(self, stream_id: UUID, from_version: int) -> Iterator[Event]:
        """Yield the events of a stream from a version back to its first, read in parts."""
        while from_version > 0:
            may_block()
            last = {"lte": from_version, "desc": True, "limit": PART_EVENTS}
            stored = _query(self.recorder.select_events, stream_id, **last)
            yield from map(self.mapper.to_domain_event, stored)
            from_version = from_version - len(stored) if stored else 0

    def append(self, *aggregates: Root) -> int:
        """Append the new events of aggregates other than wallets; return the last position.

        Raises Conflict when one of the streams has moved on since it was read.
        """
        return self._append(aggregates, self.insert_once)

    def change(
        self, aggregate: R, decide: Callable[[R], T], otherwise: Exception | None = None
    ) -> T:
        """Let `decide` change an aggregate, then append what is new; return what it returns.

        After a Conflict `decide` is called again with the newest state. It may also commit the
        aggregate itself, together with others. Bounded by `retry_on_conflict`.
        """
        given = [aggregate]

        def attempt() -> T:
            newest = given.pop() if given else self.get(type(aggregate), aggregate.id)
            decided = decide(newest)
            if newest.pending_events:
                self.append(newest)
            return decided

        return retry_on_conflict(attempt, otherwise)

    def update(
        self, aggregate: R, change: Callable[[R], object], otherwise: Exception | None = None
    ) -> R:
        """Do as `Log.change` does, but return the aggregate as it was changed."""

        def decide(newest: R) -> R:
            change(newest)
            return newest

        return self.change(aggregate, decide, otherwise)

    def claim(self, aggregate: Root) -> int:
        """Append an intent, which only one worker may win; otherwise like `append`.

        Two workers that state the same intent within one microsecond write the same bytes. So if
        our bytes are in the log already, they may be the other worker's: that is a Conflict.
        """
        return self._append([aggregate], self.insert)

    def _append(
        self, aggregates: Sequence[Root], insert: Callable[[Sequence[StoredEvent]], int]
    ) -> int:
        may_block()
        events = [event for aggregate in aggregates for event in aggregate.collect_events()]
        stored = [self.mapper.to_stored_event(event) for event in events]
        try:
            return insert(stored)
        except EventsGone as error:
            raise ServiceUnavailable from error
        except IntegrityError:
            raise Conflict(events[0].originator_id) from None
        except PersistenceError as error:
            raise ServiceUnavailable from error

    def insert_once(self, stored: Sequence[StoredEvent]) -> int:
        """Insert; if our first try was committed without a reply, return as if it had one."""
        try:
            return self.insert(stored)
        except EventsGone:
            raise
        except IntegrityError:
            # The connection broke after the commit and before the reply.
            if self.contains(stored):
                self._wake_subscribers(stored)
                return self.recorder.max_notification_id() or 0
            raise

    def insert(self, stored: Sequence[StoredEvent]) -> int:
        """Insert stored events in one transaction; return the last position.

        Errors of the database are raised as they are. EventsGone ends the use of this log.
        """
        try:
            positions = self.around(self.recorder.insert_events, stored)
        except EventsGone:
            self._has_lost = True
            raise
        self._wake_subscribers(stored)
        return self._see(positions[-1] if positions else 0)

    def _wake_subscribers(self, stored: Sequence[StoredEvent]) -> None:
        self.appended.call(with_news(stored))
        self.observer(stored)

    def contains(self, stored: Sequence[StoredEvent]) -> bool:
        """Tell whether exactly these events are all in the log; errors are raised as they are."""
        for event in stored:
            version = event.originator_version
            found = self.recorder.select_events(event.originator_id, gt=version - 1, lte=version)
            if [(each.topic, bytes(each.state)) for each in found] != [(event.topic, event.state)]:
                return False
        return True

    def overtaken(self, stored: Iterable[StoredEvent]) -> set[UUID | str]:
        """Return the streams in which the version of one of these events is taken.

        One statement asks for all streams.
        """
        first: dict[UUID | str, int] = {}
        for event in stored:
            version = first.setdefault(event.originator_id, event.originator_version)
            first[event.originator_id] = min(version, event.originator_version)
        return {
            newest.originator_id
            for newest in self.newest(first)
            if newest.originator_version >= first[newest.originator_id]
        }

    def newest(self, streams: Collection[UUID | str]) -> Sequence[StoredEvent]:
        """Return the newest event of each of these streams that exists, undecoded."""
        if not streams:
            return []
        may_block()
        return _query(self.recorder.select_newest, streams)  # type: ignore[attr-defined]  # Ours have this.

    def read(self, after: int, limit: int) -> list[Recorded]:
        """Return the next events after a position, in order, up to one that cannot be decoded.

        Raises Poisoned when the very next event cannot be decoded.
        """
        return [*self.follow(after, limit).events]

    def streams(self, stream_ids: Collection[UUID]) -> list[Recorded]:
        """Return every event of some streams, in the order of the log."""
        rows: Sequence[LogRow] = _query(self.recorder.select_streams, stream_ids)  # type: ignore[attr-defined]  # Ours have this.
        return [
            Recorded(position, decode(as_id(stream), *rest)) for position, stream, *rest in rows
        ]

    def stored(self, after: int, limit: int) -> list[Stored]:
        """Return the next rows after a position, in order, with their bytes as they are.

        Raises Poisoned for a stream id that is no UUID; the rest of a row is not checked.
        """
        rows: Sequence[LogRow] = _query(self.recorder.select_rows, after, limit, frozenset())  # type: ignore[attr-defined]  # Ours have this.
        stored = []
        for position, stream, version, topic, state in rows:
            try:
                stored.append(Stored(position, as_id(stream), version, topic, _bytes(state)))
            except ValueError as error:
                raise Poisoned(position, str(error)) from error
        self._see(stored[-1].position if stored else 0)
        return stored

    def count(self, after: int, until: int, most: int = 1 << 62) -> int:
        """Count the events after a position and up to another, but not further than to `most`."""
        return _query(self.recorder.count_rows, after, until, most)  # type: ignore[attr-defined,no-any-return]  # Ours have this.

    def position_before(self, moment: datetime, known: int = 0) -> int:
        """Return the position of the last event before a moment, by halving from a `known` one."""
        low, high = known, self.head()
        while low < high:
            middle = (low + high) // 2
            rows = self.stored(middle, 1)
            if rows and rows[0].timestamp < moment:
                low = rows[0].position
            else:
                high = middle
        return low

    def follow(
        self, after: int, limit: int, unused: frozenset[str] = frozenset(), until: int | None = None
    ) -> Stretch:
        """Read on as `read` does, up to position `until` at most.

        Events of `unused` topics are skipped without decoding. An unknown topic is not skipped,
        because a newer release may use it.
        """
        rows = _query(self.recorder.select_rows, after, limit, unused)  # type: ignore[attr-defined]  # Ours have this.
        if until is not None:
            rows = [row for row in rows if row[0] <= until]
        events: list[Recorded] = []
        for skipped, (position, stream, version, topic, state) in enumerate(rows):
            try:
                if topic not in unused:
                    events.append(Recorded(position, decode(as_id(stream), version, topic, state)))
                elif skipped + 1 == len(rows):
                    as_id(stream)  # Its id is part of the place where the stretch ends.
            except (EventSourcingError, TopicError, ValueError) as error:
                if not skipped:
                    raise Poisoned(position, str(error)) from error
                return self._stretch(events, rows[:skipped], is_whole=False)
        return self._stretch(events, rows, is_whole=True)

    def _stretch(
        self, events: Sequence[Recorded], rows: Sequence[LogRow], *, is_whole: bool
    ) -> Stretch:
        last = None
        if rows:
            position, stream, version, *_ = rows[-1]
            last = EventRef(position, as_id(stream), version)
        self._see(last.position if last is not None else 0)
        return Stretch(events, len(rows), last, is_whole)

    def first(self, *kinds: type[Event], after: int = 0) -> Event | None:
        """Return the oldest event of some kinds. It scans the log, so call it seldom."""
        topics = [get_topic(each) for each in kinds]
        select = partial(_query, self.recorder.select_notifications)
        while following := select(after, 1, inclusive_of_start=False):
            start = following[0].id  # There may be a wide gap before it.
            found = select(start, 1, start + SCAN_EVENTS, topics)
            if found:
                return self.mapper.to_domain_event(found[0])  # type: ignore[return-value]  # topics name our events only
            after = start + SCAN_EVENTS
        return None

    def hurry(self) -> None:
        """Wake followers everywhere for somebody who waits; a commit of mere steps wakes none."""
        with suppress(PersistenceError):  # They also look by themselves.
            self.recorder.wake_followers()  # type: ignore[attr-defined]  # Ours have this.

    def head(self) -> int:
        """Return the position of the newest event; 0 for an empty log."""
        return self._see(_query(self.recorder.max_notification_id) or 0)

    def fault(self) -> str | None:
        """Say why positions of new events might not rise, and what mends it; None if they do.

        Raises ServiceUnavailable if the log cannot be reached.
        """
        # On SQLite positions rise by themselves, so it is enough that the log answers.
        found: object = _query(getattr(self.recorder, "fault", self.head))
        return found if isinstance(found, str) else None

    def _see(self, position: int) -> int:
        self.seen = max(self.seen, position)
        return position

    @property
    def is_over(self) -> bool:
        """Tell whether another server answers, or an event that was read is gone.

        Whatever this process remembers may then be wrong: it must begin anew, with another log.
        """
        return self._has_lost or getattr(self.recorder, "is_over", _never)()

    def record_loss(self, seen: int) -> None:
        """Record in the log that events are gone, if it lacks those that were `seen` before.

        Errors of the database are raised as they are, as on a standby.
        """
        last: int = getattr(self.recorder, "last_position_up_to", lambda up_to: up_to)(seen)
        self._see(last)  # Or a second failover could lose it unnoticed.
        if last == seen:
            return
        lost = Discontinuity.notice(self.server, last, seen, Cause(utc_now(), "failover"))
        with suppress(IntegrityError):  # Another process has recorded the same loss.
            self.insert([self.mapper.to_stored_event(event) for event in lost.collect_events()])
            logger.error("the log has lost events after position %d, up to %d", last, seen)

    @property
    def server(self) -> str:
        """The server that answers, as `log.discontinued` names it."""
        named: str = getattr(self.recorder, "server", str)()
        return named

    def given(self) -> int:
        """Return the newest position that was ever given out, if the database remembers it.

        If it is larger than `head`, events were cut off the end of the log.
        """
        remembered: int = getattr(self.recorder, "newest_position_given", self.head)()
        return remembered

    def _parts_of(
        self, stream_id: UUID, after_version: int | None, up_to_version: int | None = None
    ) -> Iterator[Sequence[Event]]:
        """Yield all events of a stream after a version, in order."""
        may_block()
        select, decode = self.recorder.select_events, self.mapper.to_domain_event
        while True:
            span = {"gt": after_version, "lte": up_to_version, "limit": PART_EVENTS}
            stored = _query(select, stream_id, **span)
            yield [decode(each) for each in stored]  # type: ignore[misc]  # topics name our events only
            if len(stored) < PART_EVENTS:
                return
            after_version = stored[-1].originator_version


def _query(read: Callable[..., T], *which: Any, **named: Any) -> T:
    """Query the recorder; raises ServiceUnavailable if it cannot be reached."""
    try:
        return read(*which, **named)
    except PersistenceError as error:
        raise ServiceUnavailable from error


def _bytes(state: object) -> bytes:
    """Return stored bytes; SQLite gives text if somebody changed the row with its functions."""
    return state if isinstance(state, bytes) else str(state).encode()


def _never() -> bool:
    return False


def with_news(stored: Iterable[StoredEvent]) -> set[str]:
    """Return the streams of a commit that a thread may wait for; steps wake nobody."""
    return {digits_of(event.originator_id) for event in stored if not _is_step(event.topic)}


@cache
def _is_step(topic: str) -> bool:
    """Tell whether an event is a mere step; an event of an unknown kind may be an outcome."""
    try:
        kind: type[Event] = class_of(topic, Event)
    except TopicError:
        return False
    return kind.IS_STEP


def decoded(row: Stored) -> Recorded:
    """Return the event in a row of the log; raises Poisoned if it cannot be decoded."""
    position, stream_id, version, topic, state = row
    try:
        return Recorded(position, decode(stream_id, version, topic, state))
    except (EventSourcingError, TopicError, ValueError) as error:
        raise Poisoned(position, str(error)) from error


def retry_on_conflict(attempt: Callable[[], T], otherwise: Exception | None = None) -> T:
    """Load, decide and append in one `attempt`; repeat it after each Conflict.

    Raises `otherwise` after RACES_MAX conflicts in a row; by default that is ServiceUnavailable,
    and the same request may be sent again.
    """
    for _ in range(RACES_MAX):
        with suppress(Conflict):
            return attempt()
    raise otherwise or ServiceUnavailable(CONTESTED)


def retried(attempt: Callable[P, T]) -> Callable[P, T]:
    """Make each call of a command one of `retry_on_conflict`."""

    @wraps(attempt)
    def run(*given: P.args, **named: P.kwargs) -> T:
        return retry_on_conflict(lambda: attempt(*given, **named))

    return run


def predecessors(stored: Iterable[StoredEvent]) -> dict[UUID | str, int]:
    """Return the version before the first of these events, for each stream that they continue."""
    before: dict[UUID | str, int] = {}
    for event in stored:
        version = event.originator_version - 1
        if version < before.get(event.originator_id, event.originator_version):
            before[event.originator_id] = version
    return {stream: version for stream, version in before.items() if version > 0}


def replay(events: Iterable[Event], aggregate: R | None = None) -> R | None:
    """Apply events in order; the library's projector checks a Protocol at run time each time."""
    for event in events:
        aggregate = event.mutate(aggregate)
    return aggregate


def as_of(kind: type[R], history: Iterable[Event], moment: datetime) -> R | None:
    """Replay a stream up to and including a moment; None before its first event.

    An event that is dated before its predecessor counts as of the predecessor.
    """
    aggregate: R | None = replay(takewhile(lambda event: event.timestamp <= moment, history))
    return aggregate if isinstance(aggregate, kind) else None
