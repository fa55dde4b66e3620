"""A server in a process of its own: the service, or the bare view beside it."""

import os
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from http.client import HTTPConnection
from pathlib import Path
from time import perf_counter

from tests.bench.engine import broker_settings, on_postgres
from tests.bench.limits import bare_view

HOST = "127.0.0.1"
BACKGROUND = ("projector", "dispatcher", "worker")
READY_S = 60.0
LOOK_S = 0.01
STOP_S = 30.0


def free_port() -> int:
    """Return a port that nobody listens on now."""
    with socket.socket() as listener:
        listener.bind((HOST, 0))
        port: int = listener.getsockname()[1]
        return port


@contextmanager
def service(environment: Mapping[str, str], port: int, log: Path) -> Iterator[float]:
    """Run `serve`, or on PostgreSQL the processes; yields the seconds until `/livez` answers."""
    settings = {**environment, **broker_settings(), "HOST": HOST, "PORT": str(port)}
    if not on_postgres():
        with _running(["app", "serve"], settings, port, log) as ready_s:
            yield ready_s
        return
    with ExitStack() as stack:
        for role in BACKGROUND:
            stack.enter_context(process(role, settings, log))
        yield stack.enter_context(_running(["app", "web"], settings, port, log))


@contextmanager
def process(role: str, settings: Mapping[str, str], log: Path) -> Iterator[None]:
    """Run a process without HTTP; it takes up its work when it is ready."""
    with _started(["app", role], settings, log):
        yield


@contextmanager
def bare_server(body: bytes, port: int, directory: Path) -> Iterator[float]:
    """Run the bare view; yields the same as `service`."""
    file = directory / "body.json"
    file.write_bytes(body)
    workers = "2" if on_postgres() else "1"
    arguments = [bare_view.__name__, str(port), str(file), workers]
    with _running(arguments, {}, port, directory / "bare.log") as ready_s:
        yield ready_s


@contextmanager
def _running(
    arguments: list[str], settings: Mapping[str, str], port: int, log: Path
) -> Iterator[float]:
    started = perf_counter()
    with _started(arguments, settings, log) as process:
        _wait_until_ready(process, port, log)
        yield perf_counter() - started


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
