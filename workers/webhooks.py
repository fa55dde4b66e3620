"""Sends planned deliveries: in order per link or job, again after failures, fairly to endpoints.

A message in the queue `webhook` only says that an endpoint may have something due. Its worker
takes deliveries of that endpoint one by one, for a round; then other endpoints have theirs.

An endpoint that hangs holds a thread for ten seconds. So an endpoint whose last attempt was slow or
failed gets one place, and all such endpoints together get half of the threads. No endpoint gets a
second place while many threads are busy. So however many hang, a thread is free for the others.
"""

import logging
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack, nullcontext, suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from threading import RLock
from uuid import UUID

from domain.cause import Cause, Clock
from domain.errors import RateLimited, ServiceUnavailable
from domain.limiter import Limiter
from domain.log.log import Log
from domain.webhooks.commands import Webhooks
from domain.webhooks.deliveries import (
    DISABLED_AFTER,
    PAUSE_MAX,
    Delivery,
    Health,
    Send,
    Sent,
    after_attempt,
)
from domain.webhooks.endpoint import DisabledReason, WebhookEndpoint
from domain.webhooks.messages import TEST
from domain.webhooks.signatures import Generation
from projections.stores.deliveries import Claimed, Deliveries
from workers.routes import Publisher, webhook_message

SUCCESS = 2  # The hundreds of a status (RFC 9110).
UNSIGNED = "secret_revoked"  # The error of a delivery that nothing can sign.
GONE = 410  # An endpoint that replies this wants no more deliveries.
RETENTION = timedelta(days=30)
SLOTS = 4  # For one endpoint that answers well, over all processes.
SLOW_S = 1.0
ROUND_S = 1.0
SLOW_MAX = 10_000  # Endpoints that a process remembers as slow.

logger = logging.getLogger(__name__)


# Returns the value of `webhook-signature`, empty if no generation can sign. It takes the endpoint,
# its generations, the id of the message, the timestamp and the body.
Sign = Callable[[UUID, Sequence[Generation], str, int, bytes], str]


@dataclass(eq=False)
class WebhookWork:
    """Works on the deliveries of endpoints; any message may come twice, late or never.

    `is_doubted` tells whether the clock must not be believed about days.
    """

    log: Log
    webhooks: Webhooks
    webhook_deliveries: Deliveries
    send: Send
    sign: Sign
    can_sign: Callable[[], bool]
    publisher: Publisher
    clock: Clock
    threads: int
    is_doubted: Callable[[], bool]

    def __post_init__(self) -> None:
        half = self.threads // 2
        self._organizations = Limiter(self.threads, half)
        self._endpoints = Limiter(self.threads // 4, SLOTS)
        self._slow_endpoints = Limiter(half, 1)
        self._slow: dict[UUID, None] = {}
        self._lock = RLock()

    def deliver(self, organization_id: UUID, endpoint_id: UUID) -> None:
        """Deliver to an endpoint for a round; if it has no slot now, a later message comes.

        A process that cannot sign takes nothing, so that processes that can sign find it.
        """
        if not self.can_sign() or (slot := self.slot(organization_id, endpoint_id)) is None:
            return
        with slot:
            has_more = self._deliver_round(organization_id, endpoint_id)
        if has_more:
            self._wake(organization_id, endpoint_id)

    def slot(self, organization_id: UUID, endpoint_id: UUID) -> ExitStack | None:
        """Take a slot, if there is one now; closing it gives it back. See above."""
        with self._lock, suppress(RateLimited, ServiceUnavailable), ExitStack() as slots:
            slots.enter_context(self._organizations.slot(organization_id))
            here = self._endpoints.count_of(endpoint_id)
            if endpoint_id in self._slow and here:
                return None
            if endpoint_id in self._slow:
                slots.enter_context(self._slow_endpoints.slot(endpoint_id))
            if here:
                slots.enter_context(self._endpoints.slot(endpoint_id))
            else:
                self._endpoints.reacquire(endpoint_id)
                slots.callback(self._endpoints.leave, endpoint_id)
            return slots.pop_all()
        return None

    def remember(self, endpoint_id: UUID, *, is_slow: bool) -> None:
        """Remember whether the last attempt at an endpoint was slow or failed."""
        with self._lock:
            if not is_slow:
                self._slow.pop(endpoint_id, None)
            elif len(self._slow) < SLOW_MAX:
                self._slow[endpoint_id] = None

    def _has_slot(self, organization_id: UUID, endpoint_id: UUID) -> bool:
        # Under the lock, so that nobody else finds that slot taken meanwhile.
        with self._lock, self.slot(organization_id, endpoint_id) or nullcontext() as slot:
            return slot is not None

    def beat(self) -> None:
        """Publish messages for what is due: retries, and deliveries whose message was lost."""
        due = self.webhook_deliveries.due(self.clock())
        free = [each for each in due if self._has_slot(*each)]
        if free and self.publisher.backlog("webhook") < self.threads:
            for organization_id, endpoint_id in free[: self.threads]:
                self.publisher.publish(webhook_message(organization_id, endpoint_id))

    def _deliver_round(self, organization_id: UUID, endpoint_id: UUID) -> bool:
        """Deliver one by one until nothing is left or the round is over; tell if more is left."""
        started, is_awake = time.monotonic(), False
        while (
            claim := self.webhook_deliveries.claim(endpoint_id, self.clock(), SLOTS)
        ) is not None:
            if claim.has_more and not is_awake and self._has_slot(organization_id, endpoint_id):
                self._wake(organization_id, endpoint_id)
                is_awake = True
            if not self._attempt(claim):
                return False
            if time.monotonic() - started > ROUND_S:
                return claim.has_more
        return False

    def _attempt(self, claim: Claimed) -> bool:
        """Make an attempt; False if the endpoint should be left alone for now."""
        delivery, now = claim.delivery, self.clock()
        endpoint = self.log.find(WebhookEndpoint, delivery.endpoint_id)
        address = None
        if endpoint is not None and endpoint.disabled is None and not endpoint.is_deleted:
            address = self.webhooks.address(endpoint)
        if endpoint is None or address is None:
            self.webhook_deliveries.cancel(delivery.endpoint_id, now)
            return False
        headers = self._headers(endpoint, delivery, now)
        if not headers["webhook-signature"]:
            self.webhook_deliveries.wait(claim, UNSIGNED, now + PAUSE_MAX)
            return False
        sent = self.send(address.url, headers, delivery.body)
        is_success = sent.status is not None and sent.status // 100 == SUCCESS
        is_slow = not is_success or sent.duration_ms > SLOW_S * 1000
        self.remember(endpoint.id, is_slow=is_slow)
        self._settle(endpoint, claim, sent, is_success=is_success)
        return is_success

    def _headers(
        self, endpoint: WebhookEndpoint, delivery: Delivery, now: datetime
    ) -> dict[str, str]:
        stamp, generations = int(now.timestamp()), endpoint.generations(now)
        signed = self.sign(endpoint.id, generations, str(delivery.id), stamp, delivery.body)
        return {
            "Content-Type": "application/json",
            "webhook-id": str(delivery.id),
            "webhook-timestamp": str(stamp),
            "webhook-signature": signed,
        }

    def _settle(
        self, endpoint: WebhookEndpoint, claim: Claimed, sent: Sent, *, is_success: bool
    ) -> None:
        """Store the outcome; disable the endpoint first, so a crash between repeats the attempt."""
        now, health = self.clock(), claim.health
        if health.failing_since is not None and health.failing_since < endpoint.fresh_since:
            health = Health(0, None)  # The endpoint was changed or enabled since.
        if is_success or claim.delivery.type != TEST:  # It is asked for while a server is made.
            health = health.after(now, is_success=is_success)
        since = health.failing_since
        reason: DisabledReason | None = None
        if sent.status == GONE:
            reason = "gone"
        elif (
            since is not None
            and now - since >= DISABLED_AFTER
            and self.webhook_deliveries.failing_since(endpoint.id) == since  # No success meanwhile.
            and not self.is_doubted()
        ):
            reason = "failing"
        is_over = reason is not None and self._disable(endpoint, reason, now)
        ended = after_attempt(claim.delivery, sent, now, is_success=is_success, is_over=is_over)
        self.webhook_deliveries.settle(claim, ended, health, now)
        if is_over:
            self.webhook_deliveries.cancel(endpoint.id, now)

    def _disable(self, endpoint: WebhookEndpoint, reason: DisabledReason, now: datetime) -> bool:
        """Disable an endpoint, unless it was changed since: then its new address is tried first."""

        def decide(newest: WebhookEndpoint) -> bool:
            if newest.fresh_since != endpoint.fresh_since:
                return False
            newest.disable(reason, Cause(now, f"webhook-{endpoint.id}"))
            return True

        if not self.log.change(endpoint, decide):
            return False
        owner = endpoint.organization_id
        logger.warning("webhook endpoint %s of %s is disabled: %s", endpoint.id, owner, reason)
        return True

    def _wake(self, organization_id: UUID, endpoint_id: UUID) -> None:
        with suppress(Exception):  # Whatever the broker raises, the next beat publishes again.
            self.publisher.publish(webhook_message(organization_id, endpoint_id))
