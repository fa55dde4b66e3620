"""A server in a process of its own: the service, or the plain service beside it."""

import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from http.client import HTTPConnection
from pathlib import Path
from time import perf_counter

import msgspec

from tests.bench.engine import (
    broker_settings,
    on_postgres,
    peer_server_pids,
    server_pids,
)
from tests.bench.peers import plain_service

HOST = "127.0.0.1"
BACKGROUND = ("projector", "dispatcher", "worker", "clock")
READY_S = 60.0
LOOK_S = 0.01
STOP_S = 30.0


@dataclass(frozen=True)
class Running:
    """A server that answers, and its processes by what they do."""

    pids: Mapping[str, int]


@contextmanager
def service(environment: Mapping[str, str], port: int, log: Path) -> Iterator[Running]:
    """Run `serve`, or on PostgreSQL the processes."""
    settings = {**environment, **broker_settings(), "HOST": HOST, "PORT": str(port)}
    if not on_postgres():
        with _running(["app", "serve"], settings, port, log) as running:
            yield running
        return
    with ExitStack() as stack:
        pids = {role: stack.enter_context(process(role, settings, log)) for role in BACKGROUND}
        web = stack.enter_context(_running(["app", "web"], settings, port, log))
        yield Running({**web.pids, **pids, **server_pids()})


@contextmanager
def process(role: str, settings: Mapping[str, str], log: Path) -> Iterator[int]:
    """Run a process without HTTP; it takes up its work when it is ready."""
    with _started(["app", role], settings, log) as started:
        yield started.pid


@contextmanager
def plain_server(
    config: plain_service.Config, port: int, log: Path, processes: int = 1
) -> Iterator[Running]:
    """Run the plain service in so many processes."""
    factory = ["uvicorn", "--factory", f"{plain_service.__name__}:create"]
    where = ["--host", HOST, "--port", str(port), "--workers", str(processes)]
    how = ["--loop", "uvloop", "--http", "httptools", "--log-level", "warning", "--no-access-log"]
    settings = {"PEER": msgspec.json.encode(config).decode()}
    with _running([*factory, *where, *how], settings, port, log) as running:
        yield Running({**running.pids, **peer_server_pids()})


@contextmanager
def _running(
    arguments: list[str], settings: Mapping[str, str], port: int, log: Path
) -> Iterator[Running]:
    with _started(arguments, settings, log) as started:
        _wait_until_ready(started, port, log)
        yield Running({_role(arguments): started.pid})


def _role(arguments: Sequence[str]) -> str:
    """Name the process: that of the Procfile, or the program."""
    return arguments[1] if arguments[0] == "app" else arguments[0]


@contextmanager
def _started(
    arguments: list[str], settings: Mapping[str, str], log: Path
) -> "Iterator[subprocess.Popen[bytes]]":
    with log.open("ab") as output:
        process = subprocess.Popen(
            [sys.executable, "-m", *arguments],
            env={**os.environ, **settings},
            stdout=output,
            stderr=output,
        )
    try:
        yield process
    finally:
        process.terminate()
        process.wait(STOP_S)


def _wait_until_ready(process: "subprocess.Popen[bytes]", port: int, log: Path) -> None:
    deadline = perf_counter() + READY_S
    while not _answers(port):
        try:
            process.wait(LOOK_S)
        except subprocess.TimeoutExpired:
            if perf_counter() < deadline:
                continue
        message = f"the server did not start:\n{log.read_text('utf-8')[-2_000:]}"
        raise RuntimeError(message)


def _answers(port: int) -> bool:
    connection = HTTPConnection(HOST, port, timeout=READY_S)
    try:
        connection.request("GET", "/livez")
        return connection.getresponse().status == 200
    except OSError:
        return False
    finally:
        connection.close()
