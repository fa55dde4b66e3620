"""Messages reach the work through a real broker and real worker threads."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from dramatiq import Worker

from domain.lookups.bulk import SLICE_ITEMS
from tests.installation import CountingProvider, Installation, Process, numbers, wait_until
from tests.workers.jobs import Work
from tests.workers.queueing import Sweeps
from workers.dispatcher import Dispatcher
from workers.routes import slice_message


@pytest.fixture
def provider() -> CountingProvider:
    return CountingProvider()


@pytest.fixture
def process(installation: Installation, provider: CountingProvider) -> Process:
    return installation.process(provider=provider)


@contextmanager
def working(process: Process) -> Iterator[None]:
    worker = Worker(process.broker, worker_threads=2, worker_timeout=10)
    worker.start()
    try:
        yield
    finally:
        worker.stop(timeout=10_000)


def test_a_message_is_worked_on(installation: Installation, process: Process) -> None:
    work = Work(installation, numbers(3))
    with working(process):
        process.publisher.publish(slice_message(work.job_id, 0))
        wait_until(lambda: work.job.finished_at is not None)
    work.check()


def test_an_accepted_job_runs_to_its_end_from_the_log_alone(
    installation: Installation, process: Process
) -> None:
    dispatcher = Dispatcher(
        process.log, process.views, process.positions, process.publisher, Sweeps()
    )
    dispatcher.step()
    work = Work(installation, numbers(2 * SLICE_ITEMS + 1))
    with working(process):
        while dispatcher.step():
            pass
        wait_until(lambda: work.job.finished_at is not None)
    work.check()


def test_a_message_that_fails_is_tried_once_more_and_then_left_to_the_sweep(
    installation: Installation, process: Process, provider: CountingProvider
) -> None:
    work = Work(installation, numbers(1))
    provider.bug = KeyError("a bug of the adapter")
    with working(process):
        process.publisher.publish(slice_message(work.job_id, 0))
        wait_until(lambda: work.starts() == 2)
        process.broker.join("lookup", timeout=10_000)
    assert work.starts() == 2
    assert process.publisher.backlog("lookup") == 0
    work.check()


def test_the_backlog_is_what_waits(process: Process, installation: Installation) -> None:
    work = Work(installation, numbers(1))
    for count in range(1, 4):
        process.publisher.publish(slice_message(work.job_id, 0))
        assert process.publisher.backlog("lookup") == count
    assert process.publisher.backlog("nothing") == 0
