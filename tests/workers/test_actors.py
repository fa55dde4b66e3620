"""Messages reach the work through a real broker and real worker threads."""

import inspect
from uuid import UUID

import pytest
from dramatiq import Message

from domain.lookups.bulk_job import BulkJob
from tests.installation import CountingProvider, Installation, Process, numbers, wait_until
from tests.workers.queueing import working
from workers.routes import Message as AskedWork
from workers.routes import fees_message, saga_message, slice_message


@pytest.fixture
def process(installation: Installation, provider: CountingProvider) -> Process:
    return installation.process(provider=provider)


def test_a_message_that_fails_is_left_to_the_sweep(
    process: Process, provider: CountingProvider
) -> None:
    job_id = process.create_job(process.organization(), numbers(1))
    provider.bug = KeyError("a bug of the adapter")

    def starts() -> int:
        return len(process.events(BulkJob.SliceStarted))

    with working(process):
        process.publisher.publish(slice_message(job_id, 0))
        wait_until(lambda: starts() == 1)
        process.broker.queues["lookup"].join()
    assert starts() == 1
    assert process.publisher.backlog("lookup") == 0


def written(queue: str, actor: str, arguments: str, message_id: str) -> bytes:
    """Return a message as 289da21 wrote it; it may wait in a queue while a newer release starts."""
    return (
        f'{{"queue_name":"{queue}","actor_name":"{actor}","args":[{arguments}],"kwargs":{{}},'
        f'"options":{{}},"message_id":"{message_id}","message_timestamp":1795401718533}}'
    ).encode()


ID = "a3c5e1f2-4b6d-4f80-9a1b-2c3d4e5f6071"
EARLIER_MESSAGES = [
    (
        slice_message(UUID(ID), 3),
        written("lookup", "work_slice", f'"{ID}",3', "6d9a190b-d2cd-410e-93e4-011da559ee87"),
    ),
    (
        saga_message("link", UUID(ID)),
        written("provision", "work_link", f'"{ID}"', "a23af60f-2b60-4ca1-9545-da77ca79ad1a"),
    ),
    (
        saga_message("plan_change", UUID(ID)),
        written("provision", "work_plan_change", f'"{ID}"', "2c467276-04f6-4de6-a945-47cdf99a5718"),
    ),
    (fees_message(), written("billing", "charge_fees", "", "f8027b9d-9782-4685-be2a-f967eb355ae5")),
]


@pytest.mark.parametrize(
    ("message", "earlier"), EARLIER_MESSAGES, ids=[each.actor for each, _ in EARLIER_MESSAGES]
)
def test_a_message_in_a_queue_is_the_same_in_the_earlier_release_and_in_this_one(
    process: Process, message: AskedWork, earlier: bytes
) -> None:
    queued = Message.decode(earlier)
    process.publisher.publish(message)
    sent = Message.decode(process.broker.queues[queued.queue_name].get_nowait())
    same = {"message_id": queued.message_id, "message_timestamp": queued.message_timestamp}
    assert sent.copy(**same).encode() == earlier
    actor = process.broker.get_actor(queued.actor_name)
    assert actor.queue_name == queued.queue_name
    inspect.signature(actor.fn).bind(*queued.args, **queued.kwargs)
