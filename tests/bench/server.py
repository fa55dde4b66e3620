"""A server in a process of its own: the service, or the plain service beside it.

Each lends the processes of a server that answers, by what they do.
"""

import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from functools import partial
from http.client import HTTPConnection
from pathlib import Path

import msgspec

from tests.bench.engine import (
    broker_settings,
    on_postgres,
    peer_server_pids,
    server_pids,
)
from tests.bench.peers import plain_service
from tests.house.running import Running
from tests.installation import LOOK_S, wait_until

HOST = "127.0.0.1"
BACKGROUND = ("projector", "dispatcher", "worker", "clock")
READY_S = 60.0

Pids = Mapping[str, int]


@contextmanager
def service(environment: Mapping[str, str], port: int, log: Path) -> Iterator[Pids]:
    """Run `serve`, or on PostgreSQL the processes; a worker takes up its work when it is ready."""
    settings = {**environment, **broker_settings(), "HOST": HOST, "PORT": str(port)}
    with ExitStack() as stack:

        def start(role: str, port: int | None = None) -> int:
            return stack.enter_context(_running(role, ["app", role], settings, log, port))

        if not on_postgres():
            yield {"serve": start("serve", port)}
            return
        pids = {role: start(role) for role in BACKGROUND}
        yield {"web": start("web", port), **pids, **server_pids()}


@contextmanager
def plain_server(
    config: plain_service.Config, port: int, log: Path, processes: int = 1
) -> Iterator[Pids]:
    """Run the plain service in so many processes."""
    factory = ["uvicorn", "--factory", f"{plain_service.__name__}:create"]
    where = ["--host", HOST, "--port", str(port), "--workers", str(processes)]
    how = ["--loop", "uvloop", "--http", "httptools", "--log-level", "warning", "--no-access-log"]
    settings = {"PEER": msgspec.json.encode(config).decode()}
    with _running("uvicorn", [*factory, *where, *how], settings, log, port) as pid:
        yield {"uvicorn": pid, **peer_server_pids()}


@contextmanager
def _running(
    name: str, program: Sequence[str], settings: Mapping[str, str], log: Path, port: int | None
) -> Iterator[int]:
    """Run a process; one with a port answers there."""
    starter = partial(subprocess.Popen, [sys.executable, "-m", *program])
    own = log.with_name(f"{name}-{log.name}")
    started = Running(name, starter, {**os.environ, **settings}, own)
    try:
        if port is not None:
            wait_until(lambda: _answers(port) or not started.is_running(), READY_S, name, LOOK_S)
        assert started.is_running(), f"it did not start:\n{started.said()[-2_000:]}"
        yield started.pid
    finally:
        started.stop()


def _answers(port: int) -> bool:
    with suppress(OSError), closing(HTTPConnection(HOST, port, timeout=READY_S)) as connection:
        connection.request("GET", "/livez")
        return connection.getresponse().status == 200
    return False
