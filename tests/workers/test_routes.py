"""The one table from events to messages: ids only, and nothing for events without a route."""

from uuid import UUID, uuid4

import pytest

from domain.log.aggregate import Event
from domain.lookups.bulk_commands import SLICE_ITEMS
from tests.installation import Process, numbers
from tests.projections.histories import Life, create_job
from workers.routes import ROUTES, Message, messages_for, slice_message


def recorded(process: Process) -> list[Event]:
    return [each.event for each in process.log.read(0, 10_000)]


@pytest.mark.any_database
def test_every_slice_of_a_new_job_is_asked_for(process: Process) -> None:
    organization_id = process.organization()
    for count, slices in ((1, 1), (SLICE_ITEMS, 1), (SLICE_ITEMS + 1, 2), (1_000, 4)):
        job_id = create_job(process, organization_id, numbers(count))
        (created,) = (e for e in recorded(process) if e.originator_id == job_id)
        assert list(messages_for(created)) == [
            Message("work_slice", "lookup", (str(job_id), index)) for index in range(slices)
        ]


@pytest.mark.any_database
def test_a_message_carries_ids_and_nothing_of_a_person(process: Process) -> None:
    life = Life(process, seed=31)
    life.go_on(60)
    life.finish()
    create_job(process, process.organization(), numbers(1))
    messages = [message for event in recorded(process) for message in messages_for(event)]
    assert messages
    for message in messages:
        for argument in message.arguments:
            assert isinstance(argument, int) or str(UUID(argument)) == argument


@pytest.mark.any_database
def test_only_events_of_the_table_ask_for_work(process: Process) -> None:
    life = Life(process, seed=32)
    life.go_on(60)
    life.finish()
    create_job(process, process.organization(), numbers(1))
    happened = {type(event) for event in recorded(process)}
    assert happened > set(ROUTES)
    for event in recorded(process):
        assert bool(list(messages_for(event))) == (type(event) in ROUTES)


@pytest.mark.parametrize("slice_index", [0, 3])
def test_a_message_for_a_slice_is_what_the_actor_takes(slice_index: int) -> None:
    job_id = uuid4()
    assert slice_message(job_id, slice_index).arguments == (str(job_id), slice_index)
