"""Messages to workers: what each asks for, which event asks for it, and how it reaches a queue.

`ROUTES` is the only table between the log and the queues. The dispatcher follows the log and
publishes what events ask for, at least once.
"""

import logging
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Literal
from uuid import UUID

import msgspec
from dramatiq import Broker
from dramatiq import Message as DramatiqMessage

from domain.links.link import Link
from domain.links.plan_change import PlanChange
from domain.log.aggregate import Event
from domain.log.log import EventRef, Recorded
from domain.lookups.bulk_job import BulkJob, slice_count
from projections.engine.consumer import Consumer
from projections.engine.positions import Position, Source
from projections.engine.read_model import Batch

Queue = Literal["lookup", "provision", "billing", "webhook"]
QUEUES: tuple[Queue, ...] = ("lookup", "provision", "billing", "webhook")

logger = logging.getLogger(__name__)


class Message(msgspec.Struct, frozen=True):
    """A request for work: an actor, its queue, and ids only."""

    actor: str
    queue: Queue
    arguments: tuple[str | int, ...]


def slice_message(job_id: UUID, slice_index: int) -> Message:
    """Say that there is work; the worker may take another slice than this (`work`)."""
    return Message("work_slice", "lookup", (str(job_id), slice_index))


def saga_message(kind: str, stream_id: UUID) -> Message:
    """Ask for the next steps of a link, plan_change or lost_order."""
    return Message(f"work_{kind}", "provision", (str(stream_id),))


def fees_message() -> Message:
    """Ask for a round of the monthly fee: what falls due, and what is due."""
    return Message("charge_fees", "billing", ())


def webhook_message(organization_id: UUID, endpoint_id: UUID) -> Message:
    """Say that an endpoint may have something due; the dispatcher never sends this."""
    return Message("tell_endpoint", "webhook", (str(organization_id), str(endpoint_id)))


ROUTES: Mapping[type[Event], str] = {
    BulkJob.Created: "slice",
    Link.Requested: "link",
    Link.ProvisioningFailed: "link",  # Its eSIM must be freed.
    PlanChange.Requested: "plan_change",
    PlanChange.Failed: "plan_change",  # A late add-on must be removed.
}


def messages_for(event: Event) -> Sequence[Message]:
    if isinstance(event, BulkJob.Created):
        return [slice_message(event.originator_id, index) for index in range(slice_count(event))]
    kind = ROUTES.get(type(event))
    return [saga_message(kind, event.originator_id)] if kind is not None else ()


class Publisher:
    """Puts messages into the queues of a broker; returns only when the broker has confirmed.

    `backlog` returns how many messages wait in a queue; it raises while the broker is away.
    """

    def __init__(self, broker: Broker, backlog: Callable[[str], int]) -> None:
        self._broker = broker
        self.backlog = backlog

    def publish(self, message: Message) -> None:
        """Enqueue one message; a failed call may have landed, so actors tolerate a second one."""
        envelope: DramatiqMessage[None] = DramatiqMessage(
            queue_name=message.queue,
            actor_name=message.actor,
            args=message.arguments,
            kwargs={},
            options={},
        )
        self._broker.enqueue(envelope)


class Dispatcher(Consumer):
    """Publishes first, then moves its position; a message may come twice, but is never lost.

    Without a position in this log the dispatcher starts at the head, so it never publishes the
    whole log again; what that leaves out is asked for by the beats of workers.
    """

    name = "dispatcher"
    uses = tuple(ROUTES)
    batch_max = 200  # Limits what is published twice after a crash in the middle of a batch.
    pace_s = 0.005  # Partners wait for what it sends, and its batches cost next to nothing.

    def __init__(
        self,
        source: Source,
        publisher: Publisher,
        around: Callable[[Event], AbstractContextManager[object]] = nullcontext,
    ) -> None:
        """`around` is entered while the messages of an event are published."""
        super().__init__(source)
        self._publisher, self._around = publisher, around

    def start(self, lost: Position | None) -> EventRef | None:
        del lost
        head = self._log.head()
        if head:
            logger.warning("the dispatcher starts at position %d", head)
        return self.ref_at(head)

    def prepare(self, rows: Sequence[Recorded]) -> bool:
        """Publish what events ask for; return whether that was anything."""
        published = 0
        for _, event in rows:
            messages = [*messages_for(event)]
            if messages:
                with self._around(event):
                    for message in messages:
                        self._publisher.publish(message)
            published += len(messages)
        return published > 0

    def follow(self, connection: Any, batch: Batch) -> None:
        """Store nothing."""

    def is_transient(self, error: Exception) -> bool:  # noqa: ARG002  # Whatever it is.
        """Blame no event: it is the broker that is away."""
        return True
