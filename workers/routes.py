"""Messages to workers: what each asks for, which event asks for it, and how it reaches a queue.

`ROUTES` is the only table between the log and the queues.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Literal
from uuid import UUID

import msgspec
from dramatiq import Broker
from dramatiq import Message as DramatiqMessage

from domain.links.link import Link
from domain.links.plan_change import PlanChange
from domain.log.aggregate import Event
from domain.lookups.bulk_job import BulkJob, slice_count

Queue = Literal["lookup", "provision", "billing", "webhook"]
QUEUES: tuple[Queue, ...] = ("lookup", "provision", "billing", "webhook")


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
