"""Processor time and memory of jobs of many numbers: `python -m tests.bench.large_jobs [COUNT…]`.

Each size is measured by a process of its own, in which web, worker and projector take turns, so
that its peak of memory is that of all three. Prints a table in Markdown.
"""

import sys
from collections.abc import Callable, Sequence
from multiprocessing import get_context
from pathlib import Path
from resource import RUSAGE_SELF, getrusage
from statistics import median
from tempfile import TemporaryDirectory
from time import process_time
from typing import TypeVar
from uuid import UUID

from flask.testing import FlaskClient
from werkzeug.test import TestResponse

from app.bootstrap.container import Container
from app.http.application import create_app
from app.http.lookups.ended_jobs import PART, EndedJobs
from app.processes.migrate import migrate
from app.settings import Settings
from domain.lookups.bulk_job import BulkJob
from tests.bench.installation import cause, environment
from tests.bench.partners import new_partner

COUNTS = (1_000, 15_000)
FORMATS = ("json", "csv", "ndjson")
T = TypeVar("T")
READS = 15
PATH = "/number-lookup/bulk"
HEAD = (
    "| Numbers | create | settle | read | summary | cancel | JSON | CSV | NDJSON | "
    "memory before | peak |\n|---|---|---|---|---|---|---|---|---|---|---|"
)


def numbers(count: int) -> list[str]:
    """Return different numbers of mobile carriers that can be looked up offline."""
    return [f"+97150{2_000_000 + index}" for index in range(count)]


def row(container: Container, count: int) -> Sequence[str]:
    """Measure one size; return the cells of its row."""
    app = create_app(container)
    partner = new_partner(container)
    form = {
        "grant_type": "client_credentials",
        "client_id": partner.client_id,
        "client_secret": partner.secret,
    }
    client = app.test_client()
    token = client.post("/auth/token", data=form).json["access_token"]
    client.environ_base["HTTP_AUTHORIZATION"] = f"Bearer {token}"
    small = _made(client, 1)
    _settle(container, small)
    before = _peak_mb()
    created, job = _timed(lambda: _made(client, count))
    settled, _ = _timed(lambda: _settle(container, job))
    reads = [
        _median(client, f"{PATH}/{job}{rest}")
        for rest in ("", "?fields=summary", *(f"/results?format={it}" for it in FORMATS))
    ]
    read, summary, *results = reads
    peak = _peak_mb()
    other = _made(client, count)
    container.projector.catch_up()
    found = container.bulk_cancel.find(partner.organization, other)
    cancelled, _ = _timed(lambda: container.bulk_cancel.run(found, cause()))
    times = [created, settled, read, summary, cancelled, *results]
    return [f"{count:,}", *(f"{each:,.0f} ms" for each in times), f"{before} MB", f"{peak} MB"]


def _made(client: FlaskClient, count: int) -> UUID:
    reply = _must(client.post(PATH, json={"phone_numbers": numbers(count)}))
    return UUID(reply.json["data"]["job_id"])


def _settle(container: Container, job_id: UUID) -> None:
    """Do what one worker and the projector do, slice by slice."""
    for index in range(container.log.get(BulkJob, job_id).slice_count):
        assert container.bulk_lookup.work(job_id, index)
        container.projector.catch_up()


def _median(client: FlaskClient, path: str) -> float:
    """Return the median time of a read that no reply is kept for."""
    times = []
    for _ in range(READS):
        client.application.extensions[PART] = EndedJobs()
        times.append(_timed(lambda: _must(client.get(path)).data)[0])
    return median(times)


def _must(reply: TestResponse) -> TestResponse:
    assert reply.status_code in {200, 202}, reply.text
    return reply


def _timed(call: Callable[[], T]) -> tuple[float, T]:
    started = process_time()
    found = call()
    return (process_time() - started) * 1000, found


def _peak_mb() -> int:
    return getrusage(RUSAGE_SELF).ru_maxrss // 1024


def main(sizes: Sequence[int]) -> None:
    print(HEAD, flush=True)
    for count in sizes or COUNTS:
        measuring = get_context("spawn").Process(target=measure, args=(count,))
        measuring.start()
        measuring.join()
        assert measuring.exitcode == 0


def measure(count: int) -> None:
    """Print the row of one size."""
    with TemporaryDirectory(prefix="bench-") as name:
        settings = environment(Path(name), BULK_NUMBERS_MAX=str(count))
        container = Container(Settings.from_env(settings))
        migrate(container)
        container.keys.ensure()
        try:
            print(f"| {' | '.join(row(container, count))} |", flush=True)
        finally:
            container.close()


if __name__ == "__main__":
    main([int(each) for each in sys.argv[1:]])
