"""`python -m app worker` on a real broker is killed in the midst of its work: nothing is lost."""

import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from domain.lookups.bulk_job import BulkJob
from tests.installation import (
    PATIENCE_S,
    Installation,
    Process,
    numbers,
    postgresql_only,
    wait_until,
)
from tests.servers.fixtures import fresh_url
from tests.support import warm

SLOW = "+15005550002"  # The sandbox answers it after three seconds.
LIFE_S_MAX = 60.0  # Of a process: its start alone takes seconds when the cores are busy.

pytestmark = postgresql_only("whoever has RabbitMQ has that; `tests/faults` kills what is on files")


@pytest.fixture
def process(request: pytest.FixtureRequest, installation: Installation) -> Process:
    installation.environment["BROKER_URL"] = fresh_url(request)
    return installation.process()


@contextmanager
def worker(installation: Installation) -> Iterator[subprocess.Popen[bytes]]:
    """Run a worker; at the end it is killed, unless it has ended."""
    with (installation.directory / "worker.log").open("ab") as lines:
        started = warm.start(
            ["worker"],
            {**installation.environment, "PATH": os.environ.get("PATH", "")},
            stdout=lines,
            stderr=lines,
            start_new_session=True,
        )
        try:
            yield started
        finally:
            if started.poll() is None:
                os.killpg(started.pid, signal.SIGKILL)
                started.wait(PATIENCE_S)


def job_with_slices(process: Process, count: int, *extra: str) -> BulkJob:
    """Accept a job and put its messages into the queue."""
    while process.dispatcher.step():
        pass
    wanted = [*extra, *numbers(250 * count - len(extra))]
    job_id = process.create_job(process.organization(), wanted)
    while process.dispatcher.step():
        pass
    process.projector.catch_up()
    return process.log.get(BulkJob, job_id)


def starts(process: Process, job: BulkJob) -> list[int]:
    return [
        each.slice_index
        for each in process.events(BulkJob.SliceStarted)
        if each.originator_id == job.id
    ]


def is_finished(process: Process, job: BulkJob) -> bool:
    return process.log.get(BulkJob, job.id).finished_at is not None


def check(process: Process) -> None:
    process.projector.catch_up()
    assert process.audit().failures == []


def test_a_worker_that_is_killed_in_the_midst_leaves_its_messages_to_the_next_one(
    installation: Installation, process: Process
) -> None:
    job = job_with_slices(process, 2, SLOW)
    with worker(installation) as killed:
        wait_until(lambda: 0 in starts(process, job), LIFE_S_MAX)
        os.killpg(killed.pid, signal.SIGKILL)
        assert killed.wait(PATIENCE_S) == -signal.SIGKILL
    assert not is_finished(process, job)
    with worker(installation) as second:
        wait_until(lambda: is_finished(process, job), LIFE_S_MAX)
        second.terminate()
        assert second.wait(30) == 0
    assert starts(process, job).count(0) == 2
    check(process)
