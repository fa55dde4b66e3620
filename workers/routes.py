"""Which event asks for which work: the one table between the log and the queues."""

from collections.abc import Callable, Iterable, Mapping
from typing import Literal
from uuid import UUID

import msgspec

from domain.aggregate import Event
from domain.bulk_job import BulkJob

Queue = Literal["lookup"]


class Message(msgspec.Struct, frozen=True):
    """A request for work: an actor, its queue, and ids only."""

    actor: str
    queue: Queue
    arguments: tuple[str | int, ...]


def slice_message(job_id: UUID, slice_index: int) -> Message:
    """Ask for one slice of a job."""
    return Message("work_slice", "lookup", (str(job_id), slice_index))


def _job_created(event: BulkJob.Created) -> list[Message]:
    count = -(-event.total_count // event.slice_size)
    return [slice_message(event.originator_id, index) for index in range(count)]


ROUTES: Mapping[type[Event], Callable[..., Iterable[Message]]] = {BulkJob.Created: _job_created}


def messages_for(event: Event) -> Iterable[Message]:
    """Return the messages that an event causes."""
    route = ROUTES.get(type(event))
    return route(event) if route is not None else ()
