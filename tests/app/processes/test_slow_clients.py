"""Clients that send slowly or nothing at all hold up nobody, in `serve` and in `web`.

With SOAK=1 they do so for a minute; `-s` shows how long lookups took with and without them.
"""

import os
import selectors
import socket
import sys
from collections.abc import Iterator
from contextlib import suppress
from http.client import HTTPConnection
from pathlib import Path
from threading import Event, Thread
from time import monotonic

import pytest

from app.settings import HTTP_THREADS
from tests.app.cli.shell import Shell
from tests.house.partner import NUMBER
from tests.house.running import Served, web

LONG = bool(os.environ.get("SOAK"))
SECONDS = 60.0 if LONG else 2.5
LOOKUPS_MIN = 20  # The first ones wait while hundreds of connections are made.
READ_S = 10 if LONG else 1
SLOW = 500
PACE_S = 0.2
TAKES_S_MAX = 2.0  # Half of them: on a crowded machine some take longer, whoever else calls.
# What a lookup would wait if each of them held a thread, twice: who is cut off comes again.
HELD_S = 2 * SLOW * READ_S / HTTP_THREADS
PAUSE_S = 0 if LONG else 0.01  # For whoever uses the same cores.
HEAD = b"POST /number-lookup HTTP/1.1\r\nHost: a\r\nX-Slow: "
BODY = b"POST /number-lookup HTTP/1.1\r\nHost: a\r\nContent-Length: 100000\r\n\r\n"
IDLE = b"GET /livez HTTP/1.1\r\nHost: a\r\n\r\n"
SILENT = b""
UNREAD = b"GET /openapi.json HTTP/1.1\r\nHost: a\r\n\r\n" * 5
KINDS = (HEAD, BODY, IDLE, SILENT, UNREAD)


class Slow:
    """Holds many connections, as many of each kind.

    They drip heads or bodies, are idle after a reply, say nothing, or take nothing of replies.
    Who is cut off comes again; `told` counts the replies of those who were.
    """

    def __init__(self, port: int) -> None:
        self.told = 0
        self._address = ("127.0.0.1", port)
        self._selector = selectors.DefaultSelector()
        self._unread: list[socket.socket] = []
        self._stop = Event()
        for number in range(SLOW):
            self._open(KINDS[number % len(KINDS)])
        self._thread = Thread(target=self._run)
        self._thread.start()

    def stop(self) -> None:
        self._stop.set()
        self._thread.join()
        for key in [*self._selector.get_map().values()]:
            key.fileobj.close()  # type: ignore[union-attr]  # They are sockets.
        self._selector.close()
        for each in self._unread:
            each.close()

    def _open(self, kind: bytes) -> None:
        connection = socket.create_connection(self._address, timeout=10)
        connection.sendall(kind)
        if kind is UNREAD:
            self._unread.append(connection)
            return
        self._selector.register(connection, selectors.EVENT_READ, kind)

    def _run(self) -> None:
        while not self._stop.wait(PACE_S):
            for key, _ in self._selector.select(0):
                self._hear(key.fileobj, key.data)  # type: ignore[arg-type]  # As above.
            for key in [*self._selector.get_map().values()]:
                if key.data in {HEAD, BODY}:
                    with suppress(OSError):
                        key.fileobj.send(b"x")  # type: ignore[union-attr]  # As above.

    def _hear(self, connection: socket.socket, kind: bytes) -> None:
        received = b""
        with suppress(OSError):
            received = connection.recv(65_536)
        self.told += b"REQUEST_TIMEOUT" in received
        if not received:
            self._selector.unregister(connection)
            connection.close()
            self._open(kind)


@pytest.fixture(params=["serve", pytest.param("web", marks=pytest.mark.soak)])
def server(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[int, dict[str, str]]]:
    """A server with its port, and the headers of a partner."""
    limit = {"REQUEST_READ_S": str(READ_S), "PRICE_PER_LOOKUP": "0"}  # As many as there can be.
    started = web(tmp_path, **limit) if request.param == "web" else Served(Shell(tmp_path), **limit)
    yield started.port, started.partner().headers()
    assert started.stop() == 0


def look_up(port: int, headers: dict[str, str]) -> list[float]:
    """Look numbers up one after the other; return how long each took, sorted."""
    connection, pause = HTTPConnection("127.0.0.1", port, timeout=20), Event()
    took, ends = [], monotonic() + SECONDS
    while (began := monotonic()) < ends or len(took) < LOOKUPS_MIN:
        connection.request("POST", NUMBER, headers=headers)
        reply = connection.getresponse()
        assert (reply.status, b"national_format" in reply.read()) == (200, True)
        took.append(monotonic() - began)
        pause.wait(PAUSE_S)
    connection.close()
    return sorted(took)


@pytest.mark.rounds
def test_five_hundred_slow_clients_delay_nobody_and_are_cut_off(
    server: tuple[int, dict[str, str]],
) -> None:
    port, headers = server
    runs = {"alone": look_up(port, headers)} if LONG else {}
    slow = Slow(port)
    try:
        runs["beside"] = look_up(port, headers)
    finally:
        slow.stop()
    for name, took in runs.items():
        p50, p99 = (took[int(len(took) * part)] * 1_000 for part in (0.5, 0.99))
        line = f"{name}: {len(took)} lookups, p50 {p50:.1f} ms, p99 {p99:.1f} ms\n"
        sys.stdout.write(line)
    beside = runs["beside"]
    assert beside[len(beside) // 2] < TAKES_S_MAX
    assert beside[-1] < HELD_S
    assert slow.told >= SLOW // len(KINDS)
