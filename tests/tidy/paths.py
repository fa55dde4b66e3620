"""Which files a request passes: those in which a function runs, on whatever thread, to its end.

    python -m tests.tidy.paths         how many files, and their lines
    python -m tests.tidy.paths --list  and which

One process serves everything over SQLite, as `serve` does. Counted is what each of eight requests
of a kind passes, after one that fills what is remembered: followers and the clock run meanwhile,
and do something else each time.
"""

import http.client
import json
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any
from uuid import UUID

from domain.lookups.bulk_job import BulkJob
from tests.app.http.buying import BASIC, LINKS, Buyer
from tests.bench.calls import House
from tests.seeds import make_tables, url_in
from tests.tidy.source import PACKAGES, ROOT

REQUEST_S = 30.0
COUNTED = range(3, 19, 2)  # A job looks up the number of the next request, too.
JOB = "/number-lookup/bulk"

Request = Callable[[int], tuple[str, str, Any]]


def requests_of(buyer: Buyer) -> dict[str, Request]:
    """Return what is counted; each makes its n-th request: a path, headers and a body."""
    number = "+1415555{:04d}".format
    path = "/number-lookup?phone_number=%2B1415555{:04d}".format
    plan = buyer.plans[BASIC]
    return {
        "lookup": lambda n: (path(n), "", None),
        "job": lambda n: (JOB, "", {"phone_numbers": [number(n), number(n + 1)]}),
        "link": lambda n: (LINKS, "", {"plan_id": plan, "name": f"link {n}"}),
    }


def ask(house: House, request: tuple[str, str, Any]) -> None:
    """Make one request over a connection of its own, and wait for all that it brings about."""
    (path, key, body), buyer = request, house.buyer
    headers = {**buyer.headers, **({"Idempotency-Key": key} if key else {})}
    if body is not None:
        headers["Content-Type"] = "application/json"
    connection = http.client.HTTPConnection("127.0.0.1", house.port, timeout=REQUEST_S)
    connection.request("POST", path, json.dumps(body) if body is not None else None, headers)
    reply = connection.getresponse()
    told = json.load(reply)
    connection.close()
    assert reply.status < 300, told
    parts = buyer.service.container
    if path == JOB:
        job_id = UUID(told["data"]["job_id"])
        buyer.service.until(lambda: parts.log.get(BulkJob, job_id).finished_at is not None)
    buyer.service.until_projected(*(each.name for each in parts.models))


def count(house: House) -> Iterator[tuple[str, list[str]]]:
    """Yield the files of ours that each request passes."""
    for name, request in requests_of(house.buyer).items():
        ask(house, request(1))
        runs = [house.recorder.files_of(partial(ask, house, request(n))) for n in COUNTED]
        each = [{file for files in run.values() for file in files} for run in runs]
        yield name, sorted(it for it in set.intersection(*each) if it.startswith(PACKAGES))


def main() -> None:
    with tempfile.TemporaryDirectory() as directory, ExitStack() as stack:
        make_tables(url := url_in(Path(directory)))
        for name, files in count(House(Path(directory), url, stack)):
            lines = sum((ROOT / each).read_text("utf-8").count("\n") for each in files)
            sys.stdout.write(f"{name}: {len(files)} files, {lines:,} lines\n")
            if "--list" in sys.argv:
                sys.stdout.writelines(f"    {each}\n" for each in files)


if __name__ == "__main__":
    main()
