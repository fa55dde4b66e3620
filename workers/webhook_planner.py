"""Follows the log and plans webhook deliveries, at least once, whatever process dies."""

import time
from collections import defaultdict
from collections.abc import Iterable, Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from itertools import chain
from typing import Any
from uuid import UUID

from domain.aggregates import topics_but
from domain.cause import Clock
from domain.log.log import Log, Place, Poisoned, Recorded
from domain.webhooks.endpoint import WebhookRequest
from domain.webhooks.messages import (
    TEST,
    EventContext,
    WebhookMessage,
    kinds_of,
    message_of,
    type_of,
)
from domain.webhooks.ports import Delivery, message_id
from projections.engine.database import Database
from projections.engine.positions import Fenced, Position, Positions, belongs
from projections.models.webhook_endpoints import WebhookEndpointRow, WebhookEndpoints
from projections.stores.deliveries import Deliveries
from workers.routes import Publisher, webhook_message

NAME = "webhooks"
VERSION = 1  # Raised with the tables of deliveries too; then it starts BACK in the past.
BATCH_EVENTS_MAX = 500
# How far back it starts without a position; deliveries that it plans again have the same ids.
BACK = timedelta(hours=72)
MOVE_S = 0.25  # As for the dispatcher: most events cause no delivery.
BELLS_MAX = 1_000  # Messages. While so many wait, workers find due deliveries by themselves.
ASKED = (WebhookRequest.TestAsked, WebhookRequest.RedeliveryAsked)


class WebhookPlanner:
    """Never passes the position of the endpoints' read model, so it misses no new endpoint."""

    def __init__(  # noqa: PLR0913  # It stands between the log, its position and the queue.
        self,
        log: Log,
        database: Database,
        positions: Positions,
        endpoints: WebhookEndpoints,
        plans: Deliveries,
        publisher: Publisher,
        clock: Clock,
    ) -> None:
        self._log = log
        self._database = database
        self._positions = positions
        self._endpoints = endpoints
        self._plans = plans
        self._publisher = publisher
        self._clock = clock
        self._is_checked = False
        self._place: Position | None = None  # As it was last read or written.
        self._passed: Place | None = None  # The last event that need not be looked at again.
        self._moved_at = 0.0
        self._changed_at = -1  # The next two are as of this change of an endpoint.
        self._told: dict[UUID, list[WebhookEndpointRow]] = {}
        self._unused = frozenset[str]()

    def step(self) -> int:
        """Plan what the next batch asks for; return how many events it holds."""
        places = self._positions.all(self._database)
        limit, place = places.get(self._endpoints.name), places.get(NAME)
        if limit is None:
            return 0  # The endpoints are not known yet.
        if place is None or not self._is_checked:
            self._begin(place)
            return 1
        if self._place is None or place.position != self._place.position:
            self._passed = None  # Another planner was at work.
        self._place = place
        after = self._passed.position if self._passed is not None else place.position
        if limit.position <= after:
            self._move([], [])
            return 0
        self._learn()
        if not self._told:
            assert limit.stream_id is not None, limit
            self._passed = Place(limit.position, limit.stream_id, limit.stream_version)
            self._move([], [])
            return 0
        return self._plan(place, after, limit.position)

    def _plan(self, place: Position, after: int, until: int) -> int:
        try:
            stretch = self._log.follow(after, BATCH_EVENTS_MAX, self._unused, until)
        except Poisoned as error:
            with self._database.writing() as connection:
                self._positions.fail(connection, place, str(error), self._clock())
            raise
        if stretch.last is None:
            return 0
        now = self._clock()
        context = EventContext(self._log)
        planned = [
            *chain.from_iterable(self._deliveries(each, context, now) for each in stretch.events)
        ]
        again = [
            each.event
            for each in stretch.events
            if isinstance(each.event, WebhookRequest.RedeliveryAsked)
        ]
        self._passed = stretch.last
        self._move(planned, again)
        return stretch.count

    def _deliveries(
        self, recorded: Recorded, context: EventContext, now: datetime
    ) -> Iterable[Delivery]:
        """Yield a delivery of an event for each endpoint that wants it."""
        event: Any = recorded.event
        name = type_of(event)
        wanting = [
            each
            for each in self._told.get(event.organization_id, ())
            if each.since < recorded.position and _wants(each, name, event)
        ]
        message = message_of(recorded, context) if wanting else None
        if message is not None:
            for each in wanting:
                yield _delivery(each.id, recorded, message, now)

    def _move(
        self, planned: Sequence[Delivery], again: Sequence[WebhookRequest.RedeliveryAsked]
    ) -> None:
        """Store deliveries and position in one commit; after a lost race read it again."""
        passed, place = self._passed, self._place
        if passed is None or place is None or passed.position <= place.position:
            return
        is_due = time.monotonic() > self._moved_at + MOVE_S
        if not (planned or again or is_due):
            return
        now = self._clock()
        try:
            with self._database.writing() as connection:
                self._plans.plan(connection, planned)
                for each in again:
                    self._plans.reopen(connection, each.delivery_id, each.endpoint_id, now)
                self._positions.advance(connection, [place], passed)
        except Fenced:
            self._place = self._passed = None
            return
        except BaseException:
            self._passed = None  # The batch was not stored; read it again.
            raise
        self._place = place._replace(position=passed.position)
        self._moved_at = time.monotonic()
        told = {each.endpoint_id: each.organization_id for each in planned}
        self._ring(told | {each.endpoint_id: each.organization_id for each in again})

    def _ring(self, endpoints: dict[UUID, UUID]) -> None:
        """Tell workers of new deliveries; if the broker is away, the next beat finds these."""
        with suppress(Exception):  # Whatever the broker raises.
            if endpoints and self._publisher.backlog("webhook") < BELLS_MAX:
                for endpoint_id, organization_id in endpoints.items():
                    self._publisher.publish(webhook_message(organization_id, endpoint_id))

    def _learn(self) -> None:
        """Read the endpoints again if one has changed."""
        with self._database.reading() as connection:
            changed_at = self._endpoints.changed_at(connection)
            if changed_at == self._changed_at:
                return
            found = self._endpoints.told(connection)
        told = defaultdict[UUID, list[WebhookEndpointRow]](list)
        for each in found:
            told[each.organization_id].append(each)
        kinds = {kind for each in found for kind in kinds_of(each.events)}
        self._told, self._unused = dict(told), topics_but([*kinds, *ASKED])
        self._changed_at = changed_at

    def _begin(self, place: Position | None) -> None:
        """Check the position; if it is not of this log and version, start BACK in the past."""
        self._place = self._passed = None
        if place is None or place.version != VERSION or not belongs(self._log, place):
            start = self._first_since(self._clock() - BACK)
            last = self._log.follow(start - 1, 1).last if start else None
            with self._database.writing() as connection:
                self._positions.begin(connection, NAME, VERSION, last)
        self._is_checked = True
        self._changed_at = -1

    def _first_since(self, moment: datetime) -> int:
        """Return the position of the last event before a moment, by halving; 0 if there is none."""
        low, high = 0, self._log.head()
        while low < high:
            middle = (low + high) // 2
            rows = self._log.stored(middle, 1)
            if rows and rows[0].timestamp < moment:
                low = rows[0].position
            else:
                high = middle
        return low


def _wants(endpoint: WebhookEndpointRow, name: str | None, event: Any) -> bool:
    if name == TEST:
        return bool(event.endpoint_id == endpoint.id)
    return name is not None and (endpoint.events is None or name in endpoint.events)


def _delivery(
    endpoint_id: UUID, recorded: Recorded, message: WebhookMessage, now: datetime
) -> Delivery:
    event = recorded.event
    return Delivery(
        id=message_id(endpoint_id, event.originator_id, event.originator_version),
        endpoint_id=endpoint_id,
        organization_id=message.organization_id,
        about=message.about,
        position=recorded.position,
        type=message.type,
        body=message.body,
        created_at=now,
        status="pending",
        attempts=0,
        retries=0,
        next_attempt_at=now,
        attempted_at=None,
        response_status=None,
        duration_ms=None,
        error=None,
    )
