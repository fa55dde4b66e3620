"""Follows the log and plans webhook deliveries, at least once, whatever process dies."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from operator import attrgetter
from typing import Any
from uuid import UUID

from sqlalchemy import Connection

from domain.aggregates import topics_but
from domain.log.log import EventRef, Recorded, Stretch
from domain.webhooks.deliveries import Delivery, message_id
from domain.webhooks.endpoint import WebhookRequest
from domain.webhooks.messages import NAMED_ONLY, OF_ENTRIES, TEST, Entry, kinds_of, types_of
from projections.engine.consumer import Consumer
from projections.engine.positions import Position, Source
from projections.engine.read_model import Batch
from projections.models.webhook_endpoints import WebhookEndpointRow, WebhookEndpoints
from projections.models.webhook_messages import MessageRow, WebhookMessages, row_of_entry
from projections.stores.deliveries import Deliveries
from workers.routes import Publisher, webhook_message

# How far back it starts without a position; deliveries that it plans again have the same ids.
BACK = timedelta(hours=72)
WAKING_MAX = 1_000  # Messages. While so many wait, workers find due deliveries by themselves.
REQUESTS = (
    WebhookRequest.TestAsked,
    WebhookRequest.RedeliveryAsked,
    WebhookRequest.RedeliveriesAsked,
)


class WebhookPlanner(Consumer):
    """Never passes the read models of endpoints and messages, so it misses none of them."""

    name = "webhooks"
    version = 1  # Raised with the tables of deliveries too; then it starts BACK in the past.

    def __init__(
        self,
        source: Source,
        webhook_endpoints: WebhookEndpoints,
        webhook_messages: WebhookMessages,
        webhook_deliveries: Deliveries,
        publisher: Publisher,
    ) -> None:
        super().__init__(source)
        self._endpoints, self._messages = webhook_endpoints, webhook_messages
        self._plans, self._publisher = webhook_deliveries, publisher
        self._changed_at = -1  # The next two are as of this change of an endpoint.
        self._listening: dict[UUID, list[WebhookEndpointRow]] = {}
        # Of the batch in hand.
        self._planned: Sequence[Delivery] = ()
        self._again: Sequence[tuple[Any, Sequence[UUID]]] = ()

    def start(self, lost: Position | None) -> EventRef | None:
        del lost
        self._changed_at = -1
        return self.ref_at(self._log.position_before(self._clock() - BACK))

    def read(self, after: int) -> Stretch:
        """Read up to where all is known; where nobody is told, pass it unread."""
        known = self._positions.all(self._database)
        found = [known.get(each.name) for each in (self._endpoints, self._messages)]
        limit = min(filter(None, found), key=attrgetter("position")) if all(found) else None
        if limit is None or limit.position <= after:
            return Stretch((), 0, None, is_whole=True)
        self._learn()
        if not self._listening:
            return Stretch((), 0, limit.ref, is_whole=True)
        return self._log.follow(after, self.batch_max, self.unused, limit.position)

    def prepare(self, rows: Sequence[Recorded]) -> bool:
        """Make the deliveries of a batch; return whether there is anything to store."""
        wanted = [found for each in rows for found in self._wanting(each)]
        endpoints = {
            (each.position, name): row_of_entry(name, Entry.of(each))
            for each, name, _ in wanted
            if name in OF_ENTRIES
        }
        stored = [each.position for each, name, _ in wanted if name not in OF_ENTRIES]
        if stored:
            endpoints |= self._messages.between(self._database, stored[0] - 1, stored[-1])
        now = self._clock()
        self._planned = [
            _delivery(endpoint.id, endpoints[each.position, name], now)
            for each, name, endpoint in wanted
            if (each.position, name) in endpoints
        ]
        requested = ((each.event, _requested(each.event)) for each in rows)
        self._again = [(event, ids) for event, ids in requested if ids]
        return bool(self._planned or self._again)

    def follow(self, connection: Connection, batch: Batch) -> None:
        del batch
        self._plans.plan(connection, self._planned)
        for event, ids in self._again:
            self._plans.reopen(connection, ids, event.endpoint_id, self._clock())

    def finish(self) -> None:
        """Tell workers of new deliveries; if the broker is away, the next beat finds these."""
        owners = {each.endpoint_id: each.organization_id for each in self._planned}
        owners |= {each.endpoint_id: each.organization_id for each, _ in self._again}
        with suppress(Exception):  # Whatever the broker raises.
            if owners and self._publisher.backlog("webhook") < WAKING_MAX:
                for endpoint_id, organization_id in owners.items():
                    self._publisher.publish(webhook_message(organization_id, endpoint_id))

    def _wanting(self, recorded: Recorded) -> Iterator[tuple[Recorded, str, WebhookEndpointRow]]:
        """Yield each type of message that an event may cause, with each endpoint that wants it."""
        event: Any = recorded.event
        if endpoints := self._listening.get(event.organization_id):
            for name in types_of(event):
                for each in endpoints:
                    if each.since < recorded.position and _wants(each, name, event):
                        yield recorded, name, each

    def _learn(self) -> None:
        """Read the endpoints again if one has changed."""
        with self._database.reading() as connection:
            changed_at = self._endpoints.changed_at(connection)
            if changed_at == self._changed_at:
                return
            found = self._endpoints.active(connection)
        by_owner = defaultdict[UUID, list[WebhookEndpointRow]](list)
        for each in found:
            by_owner[each.organization_id].append(each)
        kinds = {kind for each in found for kind in kinds_of(each.events)}
        self._listening, self.unused = dict(by_owner), topics_but([*kinds, *REQUESTS])
        self._changed_at = changed_at


def _requested(event: object) -> Sequence[UUID]:
    match event:
        case WebhookRequest.RedeliveryAsked():
            return [event.delivery_id]
        case WebhookRequest.RedeliveriesAsked():
            return event.delivery_ids
        case _:
            return ()


def _wants(endpoint: WebhookEndpointRow, name: str, event: Any) -> bool:
    if name == TEST:
        return bool(event.endpoint_id == endpoint.id)
    return name not in NAMED_ONLY if endpoint.events is None else name in endpoint.events


def _delivery(endpoint_id: UUID, message: MessageRow, now: datetime) -> Delivery:
    return Delivery(
        id=message_id(endpoint_id, message.stream_id, message.version, message.type),
        endpoint_id=endpoint_id,
        organization_id=message.organization_id,
        about=message.about,
        position=message.position,
        type=message.type,
        body=message.body,
        created_at=now,
        next_attempt_at=now,
    )
