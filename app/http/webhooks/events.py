"""What has happened, in order, for those who would rather ask than be told.

A read at the end may wait. What waits is on the loop of the server and holds no thread; one thread
of each process, which runs only then, looks for news and wakes whoever they are for.
"""

import logging
import re
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from threading import Event, Lock, Thread
from typing import Annotated, Any
from uuid import UUID

from marshmallow import ValidationError, fields
from msgspec import Raw, Struct

from app.bootstrap.container import Container
from app.http.edge.input import Id, Names, Query, Reads, WholeNumber
from app.http.edge.operation import Group
from app.http.edge.replies import Answer, example, mark_stale
from app.http.edge.request import CURRENT, Given
from app.http.edge.schemas import OR_EMPTY
from app.http.webhooks import message_docs
from app.security.authorization import Caller
from app.watch.trouble import log_traceback
from domain.errors import NotFound, Refused, ServiceUnavailable, ValidationFailed
from domain.ids import derive_id
from domain.limiter import Limiter
from domain.webhooks.deliveries import message_id
from domain.webhooks.messages import OF_ENTRIES, PER_EVENT_MAX, TEST, TYPES
from projections.engine.consumer import PACE_S
from projections.engine.follower import IDLE_S
from projections.engine.shape import means
from projections.models.webhook_messages import MessageRow, row_of_entry

LIMIT_MAX = 1_000  # Events of a page, which then has half a megabyte.
WAIT_MAX_S = 30
# Requests that wait in a process, and those of one organization; others are answered at once.
WAITING_MAX, WAITING_OF_ONE_MAX = 1_000, 20
WAITERS = "waiters"  # The key of `Waiters` among the extensions of the application.
NOT_A_CURSOR = "Must be a `next` that your organization was given; leave it out to begin."
ALL = (*TYPES, TEST)
NOT_YOURS = "Is none of your endpoints."

# Of each read model, by the number of an organization: of which types.
News = Sequence[Mapping[int, Collection[str]]]

logger = logging.getLogger(__name__)


def cursor_at(organization_id: UUID, position: int) -> str:
    """Return the cursor behind a position: version, position, and whose it is."""
    whose = derive_id("events", organization_id, position).bytes[:6]
    return urlsafe_b64encode(b"\1" + position.to_bytes(8, "big", signed=True) + whose).decode()


class Cursor(Reads, fields.Field[int]):
    """A cursor of the caller; becomes its position."""

    def read(self, value: Any) -> int:
        owner = CURRENT.get().organization_id
        if owner is not None and re.fullmatch(r"[A-Za-z0-9_-]{20}", value, re.ASCII):
            position = int.from_bytes(urlsafe_b64decode(value)[1:9], "big", signed=True)
            if value == cursor_at(owner, position):
                return position
        raise ValidationError(NOT_A_CURSOR)


_NAMES = "|".join(map(re.escape, ALL))


class EventQuery(Query):
    """Which events; an empty filter counts as absent."""

    after = Cursor(
        "The `next` of the page before; without it the first event is the oldest.",
        load_default=lambda: 0,
        anyOf=[{"type": "string", "pattern": "^[A-Za-z0-9_-]{20}$"}, OR_EMPTY],
    )
    types = Names(
        "Only of these types, with commas between them.",
        ALL,
        f"Must be some of these, with commas between them: {', '.join(ALL)}.",
        load_default=lambda: (),
        type="string",
        pattern=f"^(({_NAMES})(,({_NAMES}))*)?$",
        examples=["link.activated,job.finished"],
    )
    limit = WholeNumber("How many events make a page.", LIMIT_MAX, load_default=100)
    wait = WholeNumber(
        "How many seconds a read at the end waits for an event.",
        WAIT_MAX_S,
        lowest=0,
        load_default=0,
    )
    webhook_id = Id(
        "An endpoint of yours, perhaps deleted: each `id` is then its `webhook-id` there."
    )


class PulledEvent(Struct):
    """An event as a webhook tells it."""

    id: Annotated[UUID, means("The event; with `webhook_id`, the `webhook-id` at that endpoint.")]
    body: Annotated[Any, message_docs.body("What a webhook has as its body.")]


class EventPage(Struct):
    """Events, the oldest first."""

    data: list[PulledEvent]
    next: Annotated[
        str,
        means("The `after` of the next read, also where there is no event."),
        means(example="AQAAAAAAABJrd1Mog2qh"),
    ]
    has_more: Annotated[bool, means("Whether there are more by now.")]


class Waiters:
    """The requests that wait for news, and the thread that looks for these while there are any."""

    def __init__(self, parts: Container) -> None:
        self._parts = parts
        self._slots = Limiter(WAITING_MAX, WAITING_OF_ONE_MAX)
        self._lock = Lock()
        self._waiting: dict[Waiter, Callable[[], object]] = {}
        self._is_polling = False
        self._seen = 0  # The position up to which nobody who waits has missed anything.

    def enter(self, waiter: "Waiter", on_news: Callable[[], object]) -> bool:
        """Let it wait until it is told; False if too many wait."""
        with self._lock, suppress(Refused):
            if not self._is_polling:
                Thread(target=self._run, name="events", daemon=True).start()
                self._is_polling = True
            self._slots.enter(waiter.organization_id, on_news)
            self._seen = min(self._seen, waiter.after) if self._waiting else waiter.after
            self._waiting[waiter] = on_news
            return True
        return False

    def leave(self, waiter: "Waiter") -> None:
        self._slots.leave(waiter.organization_id)
        with self._lock:
            self._waiting.pop(waiter, None)

    def _run(self) -> None:
        pause = Event()
        while self._goes_on():
            mark, is_behind = self._parts.log.appended.count, True
            try:
                is_behind = self._refresh()
            except Exception as error:  # noqa: BLE001  # Those who wait get an answer all the same.
                log_traceback(logger, error)
                self._notify(None)
            pause.wait(PACE_S)
            if not is_behind:
                self._parts.log.appended.wait(mark, IDLE_S)

    def _goes_on(self) -> bool:
        with self._lock:
            self._is_polling = bool(self._waiting)
            return self._is_polling

    def _refresh(self) -> bool:
        """Tell those for whom there is news; return whether more may come at once."""
        parts, seen = self._parts, self._seen
        until = known_until(parts)
        if until is None:
            return False
        if until > seen:
            models = parts.webhook_messages, parts.transactions
            news = [each.news(parts.views, seen, until) for each in models]
            self._notify(news, seen, until)
        return self._seen < until or until < parts.log.head()

    def _notify(self, news: News | None, after: int = 0, until: int = 0) -> None:
        """Tell those whom it concerns, all if None, of the news between two positions."""
        with self._lock:
            found = [call for it, call in self._waiting.items() if news is None or it.wants(news)]
            if self._seen == after:  # Else somebody has come who has seen less.
                self._seen = until
        for call in found:
            call()


class Waiter:
    """One request at the end; `after` is the position up to which it has seen that there is none.

    When it was told of news, a thread answers the request from scratch.
    """

    def __init__(self, given: Given[None], after: int) -> None:
        assert given.organization_id is not None
        self.organization_id, self.after = given.organization_id, after
        self.wait_s: float = given.query["wait"]
        self._types, self._given = given.query["types"], given
        self._waiters: Waiters = given.extensions[WAITERS]

    def wants(self, news: News) -> bool:
        """Tell whether there is something of its organization, of a type that it waits for."""
        found = (name for each in news for name in each.get(self.organization_id.int, ()))
        return any(not self._types or name in self._types for name in found)

    def enter(self, on_news: Callable[[], object]) -> bool:
        """Wait for news; False if too many wait."""
        return self._waiters.enter(self, on_news)

    def leave(self, *, again: bool) -> None:
        """Wait no longer; `again`: a thread will count the request once more."""
        self._waiters.leave(self)
        if again:
            self._given.give_back()


blueprint = Group("Events", "webhooks", description=__doc__)


@blueprint.operation(
    "GET /v1/events",
    query=EventQuery,
    reply=example("A page of events.", EventPage),
    invalid={"after": NOT_A_CURSOR},
)
def list_events(caller: Caller, given: Given[None]) -> Answer:
    """Read what has happened, oldest first.

    Everything that a webhook of any type would tell, in the order of `data.position`, with the same
    body, also of the time when you had no endpoint. Keep `next` with what you have worked on, and
    give it as `after`: then you miss nothing, and get nothing twice. It holds for ever. At the end
    a read answers at once with no event, or waits for one. Events of one position are always on one
    page, which then may have one more than `limit`.
    """
    parts, owner, query = given.parts, caller.organization_id, given.query
    until = known_until(parts)
    if until is None:
        raise ServiceUnavailable("The events are still being read from the log; try again.")
    endpoint_id = owner
    if "webhook_id" in query:  # An id is then derived from the endpoint.
        try:
            endpoint_id = parts.webhooks.owned(owner, query["webhook_id"]).id
        except NotFound:
            raise ValidationFailed({"webhook_id": [NOT_YOURS]}) from None
    after, limit = query["after"], query["limit"]
    found = _messages(parts, owner, (after, until), query["types"], limit + PER_EVENT_MAX)
    last = found[:limit][-1].position if found else after
    shown = [each for each in found if each.position <= last]
    mark_stale(parts, parts.webhook_messages.name)
    ids = [message_id(endpoint_id, it.stream_id, it.version, it.type) for it in shown]
    events = [*map(PulledEvent, ids, (Raw(each.body) for each in shown))]
    page = EventPage(events, cursor_at(owner, last), len(found) > len(shown))
    return Answer(page, later=Waiter(given, until) if query["wait"] and not events else None)


def known_until(parts: Container) -> int | None:
    """Return the position up to which all events are known; None while they are not yet read."""
    known = parts.positions.all(parts.views)
    models = (parts.webhook_messages, parts.transactions)
    found = [known.get(each.name) for each in models]
    if any(at is None or at.version != of.version for at, of in zip(found, models, strict=True)):
        return None
    return min(at.position for at in found if at is not None)


def _messages(
    parts: Container, owner: UUID, span: tuple[int, int], types: Sequence[str], limit: int
) -> list[MessageRow]:
    """Return the first messages between two positions; those of entries come from these."""
    stored = [each for each in types if each not in OF_ENTRIES]
    of_entries = [each for each in types or OF_ENTRIES if each in OF_ENTRIES]
    found = list[MessageRow]()
    if stored or not types:
        found = parts.webhook_messages.page(parts.views, owner, span, stored, limit)
    if of_entries:
        entries = parts.transactions.entries(parts.views, owner, span, of_entries, limit)
        found += [row_of_entry(*each) for each in entries]
    return sorted(found, key=lambda each: (each.position, each.type))[:limit]
