"""The dispatcher publishes first and moves after: a message may come twice, never not at all."""

from uuid import UUID

import pytest

from domain.lookups.bulk_job import SLICE_ITEMS
from tests.installation import Process, numbers
from tests.projections.looking import place_of
from tests.workers.queueing import Queue, Refusing, dispatcher_of
from workers.routes import Dispatcher


@pytest.fixture
def queue() -> Queue:
    return Queue()


@pytest.fixture
def dispatcher(process: Process, queue: Queue, organization_id: UUID) -> Dispatcher:
    """A dispatcher that has begun, behind the making of an organization."""
    assert process.log.head() == 5, organization_id
    begun = dispatcher_of(process, queue)
    drain(begun)
    return begun


def drain(dispatcher: Dispatcher) -> None:
    while dispatcher.step():
        pass


def position(process: Process) -> int:
    return place_of(process, Dispatcher.name).position


def test_a_position_does_not_move_before_the_broker_has_everything(
    process: Process, dispatcher: Dispatcher, queue: Queue, organization_id: UUID
) -> None:
    job_id = process.create_job(organization_id, numbers(2 * SLICE_ITEMS))
    queue.capacity = 1
    for _ in range(2):
        with pytest.raises(Refusing):
            dispatcher.step()
        assert position(process) == 5
    queue.capacity = None
    drain(dispatcher)
    assert queue.taken() == [(job_id, 0), (job_id, 0), (job_id, 1)]


@pytest.mark.each_database
def test_a_first_start_is_at_the_head(
    process: Process, queue: Queue, organization_id: UUID
) -> None:
    process.create_job(organization_id, numbers(1))
    drain(dispatcher_of(process, queue))
    assert queue.messages == []
    assert position(process) == process.log.head()
