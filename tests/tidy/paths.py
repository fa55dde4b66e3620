"""Which files a request passes: those in which a function runs, on whatever thread, to its end.

    python -m tests.tidy.paths         how many files, and their lines
    python -m tests.tidy.paths --list  and which

One process serves everything over SQLite, as `serve` does. Counted is what each of twelve requests
of a kind passes, after one that fills what is remembered: followers and the clock run meanwhile,
and do something else each time.
"""

import http.client
import json
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any
from uuid import UUID

from app.bootstrap.container import Container
from domain.lookups.bulk_job import BulkJob
from tests.app.http.buying import BASIC, LINKS, Buyer
from tests.app.http.over_http import serving as serving_http
from tests.app.http.service import Service
from tests.tidy.source import PACKAGES, ROOT

FINISH_S = 5.0
REQUEST_S = 30.0
COUNTED = range(3, 27, 2)  # A job looks up the number of the next request, too.
JOB = "/number-lookup/bulk"

Request = Callable[[int], tuple[str, str, Any]]


class Recorder:
    """Notes the files of functions that are called by threads which start from now on."""

    def __init__(self) -> None:
        self.files: set[str] = set()
        self._is_on = False
        threading.setprofile(self._note)

    def _note(self, frame: FrameType, event: str, _: object) -> None:
        if self._is_on and event == "call" and frame.f_code.co_name != "<module>":
            self.files.add(frame.f_code.co_filename)

    @contextmanager
    def recording(self) -> Iterator[None]:
        """Note what runs in this block, and nothing of before."""
        self.files.clear()
        self._is_on = True
        try:
            yield
        finally:
            self._is_on = False

    def own_files(self) -> set[str]:
        """Return those that are of this product, as paths from its root."""
        paths = {Path(each) for each in self.files}
        named = (path.relative_to(ROOT) for path in paths if path.is_relative_to(ROOT))
        return {path.as_posix() for path in named if path.parts[0] in PACKAGES}


@contextmanager
def serving(directory: Path) -> Iterator[tuple[Buyer, int]]:
    """Serve on a free port; a buyer with plans and money."""
    service = Service(directory, SANDBOX="false").start()
    try:
        with serving_http(service.container, finish_s=FINISH_S) as port:
            yield Buyer(service.tenant("100.00")), port
    finally:
        service.stop()


def requests_of(buyer: Buyer) -> dict[str, Request]:
    """Return what is counted; each makes its n-th request: a path, headers and a body."""
    number = "+1415555{:04d}".format
    path = "/number-lookup?phone_number=%2B1415555{:04d}".format
    plan = buyer.plans[BASIC]
    return {
        "lookup": lambda n: (path(n), "", None),
        "lookup with a key": lambda n: (path(n), f"lookup-{n}", None),
        "job": lambda n: (JOB, "", {"phone_numbers": [number(n), number(n + 1)]}),
        "link": lambda n: (LINKS, "", {"plan_id": plan, "name": f"link {n}"}),
    }


def ask(buyer: Buyer, port: int, request: tuple[str, str, Any]) -> None:
    """Make one request over a connection of its own, and wait for all that it brings about."""
    path, key, body = request
    headers = {**buyer.headers, **({"Idempotency-Key": key} if key else {})}
    if body is not None:
        headers["Content-Type"] = "application/json"
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=REQUEST_S)
    connection.request("POST", path, json.dumps(body) if body is not None else None, headers)
    reply = connection.getresponse()
    told = json.load(reply)
    connection.close()
    assert reply.status < 300, told
    parts = buyer.service.container
    if path == JOB:
        buyer.service.until(partial(_is_finished, parts, told["data"]["job_id"]))
    buyer.service.until_projected(*(each.name for each in parts.models))


def _is_finished(parts: Container, job_id: str) -> bool:
    return parts.log.get(BulkJob, UUID(job_id)).finished_at is not None


def count(recorder: Recorder, directory: Path) -> Iterator[tuple[str, list[str]]]:
    """Yield the files that each request passes."""
    with serving(directory) as (buyer, port):
        for name, request in requests_of(buyer).items():
            ask(buyer, port, request(1))
            each = [_passed(recorder, buyer, port, request(n)) for n in COUNTED]
            yield name, sorted(set.intersection(*each))


def _passed(recorder: Recorder, buyer: Buyer, port: int, request: tuple[str, str, Any]) -> set[str]:
    with recorder.recording():
        ask(buyer, port, request)
    return recorder.own_files()


def main() -> None:
    recorder = Recorder()  # Before any thread starts.
    with tempfile.TemporaryDirectory() as directory:
        for name, files in count(recorder, Path(directory)):
            lines = sum((ROOT / each).read_text("utf-8").count("\n") for each in files)
            sys.stdout.write(f"{name}: {len(files)} files, {lines:,} lines\n")
            if "--list" in sys.argv:
                sys.stdout.writelines(f"    {each}\n" for each in files)


if __name__ == "__main__":
    main()
