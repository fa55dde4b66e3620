"""The read of a finished job of 1000 items, against a bare view of the same server and bytes.

Both what one takes, and the processor time that it costs all processes.
"""

from collections.abc import Callable, Iterator
from functools import partial
from http.client import HTTPConnection, HTTPResponse
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Event
from typing import Any

import msgspec

from app.bootstrap.container import Container
from app.processes.migrate import migrate
from app.settings import Settings
from tests.bench.installation import environment
from tests.bench.measure import all_times, each_ms, medians, percentile
from tests.bench.numbers import real_numbers
from tests.bench.partners import Partner, new_partner, tokens
from tests.bench.processor import us_each
from tests.bench.row import Aim, Row
from tests.bench.server import HOST, bare_server, free_port, service

READS = 100
REPEATS = 3
COST_REPEATS = 5
PATH = "/number-lookup/bulk"
LOOK_S = 0.05
LOOKS_MAX = 1_200  # A minute.


def measure() -> Iterator[Row]:
    with TemporaryDirectory(prefix="bench-") as name:
        directory = Path(name)
        settings = environment(directory)
        partner, port, bare_port = _partner(settings), free_port(), free_port()
        with service(settings, port, directory / "serve.log") as running:
            (bearer,) = tokens(HOST, port, [partner])
            ask = partial(_ask, HTTPConnection(HOST, port, timeout=30), bearer)
            path = f"{PATH}/{_finished_job(ask)}"
            with bare_server(ask("GET", path)[1], bare_port, directory) as beside:
                bare = partial(_ask, HTTPConnection(HOST, bare_port, timeout=30), bearer)
                ours = partial(each_ms, READS, partial(ask, "GET", path))
                limit = partial(each_ms, READS, partial(bare, "GET", path))
                times = all_times(ours, limit, repeats=REPEATS)
                costs = medians(
                    partial(us_each, READS, running.pids.values(), ours),
                    partial(us_each, READS, beside.pids.values(), limit),
                    repeats=COST_REPEATS,
                )
    p50s = [percentile(each, 50) for each in times]
    yield Row("read of a job of 1000 items", *p50s, "ms", Aim(ours_max=10))
    name = "read of a job of 1000 items, processor time"
    yield Row(name, *costs, "µs", Aim(ratio_max=4))


def _partner(settings: dict[str, str]) -> Partner:
    container = Container(Settings.from_env(settings))
    migrate(container)
    container.keys.ensure()
    try:
        return new_partner(container)
    finally:
        container.close()


def _finished_job(ask: Callable[..., tuple[HTTPResponse, bytes]]) -> str:
    """Create a job and wait for its end."""
    _, created = ask("POST", PATH, msgspec.json.encode({"phone_numbers": [*real_numbers()]}))
    job_id: str = _data(created)["job_id"]
    pause = Event()
    for _ in range(LOOKS_MAX):
        reply, body = ask("GET", f"{PATH}/{job_id}")
        if reply.getheader("Retry-After") is None:
            assert _data(body)["status"] == "completed"
            return job_id
        pause.wait(LOOK_S)
    raise TimeoutError(job_id)


def _ask(
    connection: HTTPConnection, bearer: str, method: str, path: str, body: bytes | None = None
) -> tuple[HTTPResponse, bytes]:
    headers = {"Authorization": f"Bearer {bearer}", "Content-Type": "application/json"}
    connection.request(method, path, body, headers)
    reply = connection.getresponse()
    read = reply.read()
    assert reply.status < 300, read
    return reply, read


def _data(body: bytes) -> Any:
    return msgspec.json.decode(body)["data"]
