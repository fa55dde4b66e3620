"""A pipe for log lines that nobody reads stops no process: it answers, works and ends."""

import fcntl
import os
import signal
from collections.abc import Iterator
from contextlib import suppress
from functools import partial

import pytest

from tests.app.cli.shell import Shell
from tests.app.http.over_http import send
from tests.installation import wait_until
from tests.servers.running import free_port

COMES_UP_S = 40.0
END_S = 30.0  # The contract: SIGTERM ends a process within this time.
REQUESTS = 300  # Each is a line; some 200 fill an empty pipe.


@pytest.fixture
def full_pipe() -> Iterator[int]:
    """The end to write of a pipe that takes nothing more."""
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    with suppress(BlockingIOError):
        while True:
            os.write(writing, b"x" * fcntl.fcntl(writing, fcntl.F_GETPIPE_SZ))
    with suppress(BlockingIOError):
        while True:
            os.write(writing, b"x")
    os.set_blocking(writing, True)
    yield writing
    os.close(reading)
    os.close(writing)


def get(port: int, path: str) -> int:
    request = f"GET {path} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"
    return send(port, request.encode()).status


def is_alive(port: int) -> bool:
    with suppress(OSError):
        return get(port, "/livez") == 200
    return False


@pytest.mark.parametrize(
    "name",
    [
        "worker",
        "serve",
        *(
            pytest.param(each, marks=pytest.mark.soak)
            for each in ("web", "dispatcher", "projector", "clock")
        ),
    ],
)
def test_a_process_whose_lines_nobody_reads_answers_and_ends(
    shell: Shell, full_pipe: int, name: str
) -> None:
    port, probes = free_port(), free_port()
    broker = "memory://" if name == "serve" else f"amqp://127.0.0.1:{free_port()}"
    here = shell.having(PORT=str(port), METRICS_PORT=str(probes), BROKER_URL=broker)
    process = here.start(name, stdout=full_pipe, stderr=full_pipe)
    try:
        wait_until(partial(is_alive, probes), COMES_UP_S)
        if name in {"web", "serve"}:
            wait_until(partial(is_alive, port), COMES_UP_S)
            assert {get(port, "/v1/wallet") for _ in range(REQUESTS)} == {401}
            assert is_alive(port)
        process.send_signal(signal.SIGTERM)
        assert process.wait(END_S) == 0
    finally:
        process.kill()
        process.wait()
