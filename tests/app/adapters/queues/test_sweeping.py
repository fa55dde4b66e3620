"""A purged queue loses messages but no work, because the sweep asks again."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from dramatiq import Worker

from domain.lookups.bulk_job import BulkJob
from projections.audit.auditor import verify
from tests.installation import Installation, Process, SetClock, numbers, wait_until
from tests.projections.histories import create_job
from tests.servers.fixtures import fresh_url
from tests.servers.given_broker import channel_to
from tests.workers.link_lab import Lab


@pytest.fixture
def url(request: pytest.FixtureRequest, installation: Installation) -> str:
    """A broker without queues, which the processes of this test use."""
    url = fresh_url(request)
    installation.environment["BROKER_URL"] = url
    return url


@contextmanager
def working(process: Process, queue: str) -> Iterator[None]:
    worker = Worker(process.broker, queues={queue}, worker_threads=2, worker_timeout=20)
    worker.start()
    try:
        yield
    finally:
        worker.stop(timeout=10_000)


def dispatch(process: Process) -> None:
    while process.dispatcher.step():
        pass


def purge(url: str, process: Process, queue: str, expected: int) -> None:
    wait_until(lambda: process.publisher.backlog(queue) == expected)
    with channel_to(url) as channel:
        channel.queue_purge(queue)
    assert process.publisher.backlog(queue) == 0


def check(process: Process) -> None:
    process.projector.catch_up()
    report = verify(process.log, process.views, process.positions, process.models)
    assert report.failures == []


def test_jobs_whose_messages_were_purged_are_done_after_the_next_sweep(
    url: str, installation: Installation
) -> None:
    clock = SetClock()
    process = installation.process(clock)
    dispatch(process)
    organization_id = process.organization()
    job_id = create_job(process, organization_id, numbers(600))
    dispatch(process)
    purge(url, process, "lookup", 3)
    process.projector.catch_up()
    assert process.sweep.run() == 0, "it may still be under way"
    clock.forward(seconds=61)
    assert process.sweep.run() == 3
    with working(process, "lookup"):
        wait_until(lambda: process.log.get(BulkJob, job_id).finished_at is not None)
    check(process)


def test_links_whose_messages_were_purged_are_made_after_the_next_sweep(
    url: str, installation: Installation
) -> None:
    lab = Lab(installation)
    process = lab.other_process()
    dispatch(process)
    link_id = lab.request(deadline_s=60)
    dispatch(process)
    purge(url, process, "provision", 1)
    process.projector.catch_up()
    assert process.provisioning_sweep.run() == 0, "it may still be under way"
    lab.clock.forward(seconds=3)
    assert process.provisioning_sweep.run() == 1
    with working(process, "provision"):
        wait_until(lambda: lab.link(link_id).activated_at is not None)
    check(process)


def test_what_was_accepted_before_the_very_first_dispatcher_is_asked_for_at_its_start(
    url: str, installation: Installation
) -> None:
    assert url
    lab = Lab(installation)
    process = lab.other_process()
    link_id = lab.request(deadline_s=60)
    job_id = create_job(process, lab.organization_id, numbers(3))
    dispatch(process)
    with working(process, "provision"), working(process, "lookup"):
        wait_until(lambda: lab.link(link_id).activated_at is not None)
        wait_until(lambda: process.log.get(BulkJob, job_id).finished_at is not None)
    check(process)
