"""Bulk items end to end: from accepted jobs to the last one's end, against the provider alone."""

from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack, contextmanager
from multiprocessing import get_context
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Event
from time import monotonic
from uuid import UUID

from app.bootstrap.container import Container
from app.processes.runtime import Runtime
from domain.lookups.bulk_commands import BulkRequest
from domain.lookups.bulk_job import BulkJob
from tests.bench.engine import broker_settings, on_postgres
from tests.bench.installation import (
    PRICE_MICROS,
    cause,
    environment,
    installation,
    new_organization,
)
from tests.bench.limits import lookup_loop
from tests.bench.measure import medians, rate
from tests.bench.numbers import real_numbers
from tests.bench.row import Aim, Row
from tests.bench.server import process

JOBS = 20
CORES = 2
REPEATS = 3
LOOK_S = 0.01
WAIT_S = 60.0  # Only bounds a run in which a job never ends.


def measure() -> Iterator[Row]:
    numbers = real_numbers()
    with _processes() if on_postgres() else running() as container:
        cores = CORES if on_postgres() else 1  # One process has one core's worth of Python.
        with ProcessPoolExecutor(cores, get_context("spawn"), lookup_loop.warm) as pool:
            ours, limit = medians(
                lambda: _jobs(container, numbers),
                lambda: sum(pool.map(lookup_loop.loop, [numbers] * cores)),
                repeats=REPEATS,
            )
    yield Row("bulk items end to end", ours, limit, "items/s", Aim(ratio_min=0.3))


@contextmanager
def _processes() -> Iterator[Container]:
    """Run a worker for each core, a dispatcher and a projector."""
    with installation() as container, TemporaryDirectory(prefix="bench-") as name:
        database = {"DATABASE_URL": container.settings.database_url}
        settings = {**environment(Path(name)), **database, **broker_settings()}
        container.dispatcher.step()  # A first one would pass over what was there before it.
        with ExitStack() as stack:
            for role in ["dispatcher", "projector", *["worker"] * CORES]:
                stack.enter_context(process(role, settings, Path(name) / "processes.log"))
            container.waker.start()
            yield container


@contextmanager
def running() -> Iterator[Container]:
    """Run all threads of an installation but HTTP."""
    with installation() as container, threads_of(container):
        yield container


@contextmanager
def threads_of(container: Container) -> Iterator[None]:
    """Run the same for an installation that has a past."""
    runtime = Runtime(container)
    runtime.start()
    try:
        yield
    finally:
        runtime.stop()


def _jobs(container: Container, numbers: list[str]) -> float:
    """Each job has an organization of its own, so no answer is in the cache."""
    customers = [new_organization(container) for _ in range(JOBS)]
    return rate(JOBS * len(numbers), lambda: _work_through(container, customers, numbers))


def _work_through(container: Container, customers: list[UUID], numbers: list[str]) -> None:
    head = container.log.head()
    for customer in customers:
        request = BulkRequest(customer, numbers, PRICE_MICROS, "USD", None)
        container.bulk_create.run(request, cause())
    wait_for_ends(container, head, len(customers))


def wait_for_ends(container: Container, after: int, count: int) -> None:
    """Wait until so many jobs have ended after a position; raises TimeoutError if they do not."""
    deadline = monotonic() + WAIT_S
    log, ends, pause = container.log, [BulkJob.Finished.TOPIC], Event()
    while monotonic() < deadline:
        seen = log.appended.count
        if len(log.recorder.select_notifications(after + 1, count, topics=ends)) == count:
            return
        log.appended.wait(seen, 1.0)
        pause.wait(LOOK_S)  # Who waits should not be what is measured.
    message = f"of {count} jobs some did not end"
    raise TimeoutError(message)
