"""The server holds a bounded number of bytes and connections, and ends cleanly."""

import gc
import re
import socket
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, closing, suppress
from dataclasses import replace
from threading import Event
from typing import Any
from wsgiref.types import StartResponse

import pytest

from app.bootstrap.container import Container
from app.http.edge.input import BODY_BYTES_MAX
from app.http.server import connection as server
from app.http.server.listening import Server
from app.http.server.loop import LIVEZ, Environ, Loop
from app.http.server.threads import COMPUTING_MAX
from app.settings import HTTP_THREADS, Settings
from domain.limiter import Owner
from tests.app.http.over_http import HOST, listeners, read_all, running
from tests.installation import wait_until
from tests.servers.running import accepts

ALIVE, WAIT, QUICK, LARGE, WHOLE = (
    b"GET /%s HTTP/1.1\r\nHost: a\r\n\r\n" % path
    for path in (b"livez", b"wait", b"quick", b"large", b"whole")
)
LARGE_BYTES = 20_000_000
CLOSE = b"Connection: close\r\n\r\n"
UPLOAD = b"POST /quick HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n" % BODY_BYTES_MAX
PART = UPLOAD + b"x" * (BODY_BYTES_MAX * 3 // 4)
HEAD = b"%sX: %s\r\n\r\n" % (UPLOAD[:-2].replace(b"1048576", b"262144"), b"x" * 60_000)
CHUNKED = b"POST /quick HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
READ_S = 1.0
BUSY_S = 60.0  # On a busy machine eighty threads take so long to begin and cut off their replies.


class Served:
    """A server in a thread; requests of `/wait` are answered when `go` is set, in two parts."""

    def __init__(self, read_s: Any = 20, keep_alive_s: Any = 75) -> None:
        self.go, self.at_work = Event(), 0
        opened, self.running = listeners(), ExitStack()
        self.open, self.counted = list[int](), list[object]()
        settings = replace(Settings.from_env({}), request_read_s=read_s, keep_alive_s=keep_alive_s)
        container = Container(replace(settings, metrics_port=1))
        loop = ByQuery(container, self._answer, probes={LIVEZ: LIVEZ})
        container.metrics.answered = lambda *each: self.counted.append(each)  # type: ignore[method-assign]  # To look on.
        loop.count = self.open.append
        self.server = Server(opened, lambda: loop, settings, 10)
        self.port = self.running.enter_context(running(self.server))

    def close(self) -> None:
        self.go.set()
        self.running.close()

    def connect(self, stack: ExitStack, sent: bytes = b"") -> socket.socket:
        connection = socket.create_connection((HOST, self.port), timeout=BUSY_S)
        stack.enter_context(connection)
        connection.sendall(sent)
        return connection

    def ask(self, sent: bytes = QUICK) -> bytes:
        """Return the beginning of the reply to a client that does as one should."""
        with ExitStack() as stack:
            return self.connect(stack, sent).recv(12)

    def _answer(self, environ: dict[str, Any], start: StartResponse) -> Iterable[bytes]:
        if environ["PATH_INFO"] == "/whole":
            start("200 OK", [("Content-Length", str(LARGE_BYTES))])
            yield b"x" * LARGE_BYTES
            return
        start("200 OK", [("Content-Type", "text/plain")])
        yield b"first "
        if environ["PATH_INFO"] == "/wait":
            self.at_work += 1
            assert self.go.wait(20)
        yield b"x" * LARGE_BYTES if environ["PATH_INFO"] == "/large" else b"second"


class ByQuery(Loop):
    def owner(self, environ: Environ) -> Owner:
        return environ["QUERY_STRING"]


@pytest.fixture
def served(monkeypatch: pytest.MonkeyPatch) -> Iterator[Served]:
    """Serve with bounds that are small enough to be met."""
    monkeypatch.setattr(server, "BUFFERED_BYTES_MAX", 4 * BODY_BYTES_MAX)
    monkeypatch.setattr(server, "RECOUNT_BYTES", BODY_BYTES_MAX // 4)
    monkeypatch.setattr(server, "CONNECTIONS_MAX", HTTP_THREADS + 20)
    made = Served()
    yield made
    made.close()


@pytest.fixture
def hasty(monkeypatch: pytest.MonkeyPatch) -> Iterator[Served]:
    """Serve for clients that are cut off soon."""
    monkeypatch.setattr(server, "WRITE_S", READ_S)
    made = Served(READ_S, READ_S)
    yield made
    made.close()


def is_closed(connection: socket.socket) -> Callable[[], bool]:
    connection.settimeout(0)

    def look() -> bool:
        try:
            return connection.recv(65_536) == b""
        except BlockingIOError:
            return False

    return look


SLOW = {  # What a stranger sends, what it goes on sending, and what it is told in the end.
    "silent": (b"", b"", b""),
    "empty lines": (b"", b"\r\n", b""),
    "a head": (WAIT[:20], b"x", b"408"),
    "a body": (UPLOAD, b"x", b"408"),
    "chunks": (CHUNKED, b"1\r\nx\r\n", b"408"),
    "idle": (ALIVE, b"", b"200"),
    "a second head": (ALIVE + WAIT[:20], b"x", b"200 408"),
}


@pytest.mark.parametrize("kind", SLOW)
def test_slow_strangers_delay_nobody_and_are_cut_off_after_the_time_of_one_request(
    kind: str,
) -> None:
    sent, more, told = SLOW[kind]
    with ExitStack() as stack:
        keep_alive_s = READ_S if kind == "idle" else 75.0  # A part of a request is not idle.
        hasty = stack.enter_context(closing(Served(READ_S, keep_alive_s)))
        for _ in range(HTTP_THREADS):
            hasty.connect(stack, sent)
        slow = hasty.connect(stack, sent)
        assert hasty.ask() == b"HTTP/1.1 200"
        slow.settimeout(0.1)
        found = b""
        for _ in range(100):
            try:
                if not (block := slow.recv(65_536)):
                    break
                found += block
            except TimeoutError:
                slow.send(more)
            except ConnectionResetError:
                break
        else:
            pytest.fail("it is still there")
    assert b" ".join(re.findall(rb"HTTP/1.1 (\d+)", found)) == told


@pytest.mark.parametrize("count", [1, 3])
def test_who_takes_nothing_of_a_reply_is_cut_off(hasty: Served, count: int) -> None:
    with ExitStack() as stack:
        slow = [hasty.connect(stack, LARGE * count) for _ in range(HTTP_THREADS)]
        assert hasty.ask() == b"HTTP/1.1 200"
        wait_until(lambda: not hasty.server.server_state.connections, BUSY_S)
        for each in slow:
            with suppress(ConnectionResetError):
                assert len(read_all(each)) < LARGE_BYTES


def test_who_takes_a_reply_slowly_gets_it(hasty: Served) -> None:
    pulse, found = Event(), 0
    with ExitStack() as stack:
        slow = hasty.connect(stack, LARGE[:-2] + CLOSE)
        while block := slow.recv(500_000, socket.MSG_WAITALL):
            found += len(block)
            pulse.wait(READ_S / 5 if found < 5_000_000 else 0)  # Longer than it may take nothing.
    assert found > LARGE_BYTES


def test_what_is_at_work_at_the_end_is_answered(served: Served) -> None:
    with ExitStack() as stack:
        working = served.connect(stack, WAIT)
        idle = served.connect(stack, ALIVE)
        half = served.connect(stack, WAIT[:20])
        taking = served.connect(stack, WHOLE)
        assert taking.recv(12) == b"HTTP/1.1 200"
        wait_until(lambda: served.at_work == 1)
        served.server.should_exit = True
        wait_until(is_closed(idle))
        wait_until(is_closed(half))
        assert len(read_all(taking)) > LARGE_BYTES
        assert not accepts(served.port)
        served.go.set()
        assert read_all(working).endswith(b"6\r\nfirst \r\n6\r\nsecond\r\n0\r\n\r\n")
    served.running.close()


def test_who_was_idle_or_half_heard_at_the_end_has_a_second_in_which_he_is_answered(
    served: Served,
) -> None:
    with ExitStack() as stack:
        working, idle = served.connect(stack, WAIT), served.connect(stack, ALIVE)
        half = served.connect(stack, QUICK[:-2])
        wait_until(lambda: served.at_work == 1)
        while not idle.recv(65_536).endswith(b'{"ok":true}'):
            pass
        served.server.should_exit = True
        wait_until(lambda: not accepts(served.port))
        idle.sendall(QUICK)
        half.sendall(b"\r\n")
        for answer in (read_all(idle), read_all(half)):
            assert answer.startswith(b"HTTP/1.1 200")
            assert b"\r\nconnection: close\r\n" in answer
        served.go.set()
        assert read_all(working).endswith(b"0\r\n\r\n")


def test_open_connections_are_counted(served: Served) -> None:
    with ExitStack() as stack:
        for _ in range(3):
            served.connect(stack, ALIVE)
        wait_until(lambda: served.open[-1:] == [3])
    wait_until(lambda: served.open[-1] == 0)


def test_more_requests_than_may_wait_are_refused_and_the_process_says_that_it_lives(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    with ExitStack() as stack:
        for number in range(1, COMPUTING_MAX + 1):
            # Four owners: one alone leaves slots to the next.
            served.connect(stack, WAIT.replace(b"wait", b"wait?by=%d" % (number % 4)))
            wait_until(lambda number=number: served.at_work == number)
        monkeypatch.setattr(served.server.gateway._threads._computing, "places", 6)  # noqa: SLF001  # So few are filled.
        quick = [QUICK.replace(b"quick", b"quick?%d" % number) for number in range(3)]
        waiting = [served.connect(stack, quick[number % 2]) for number in range(6)]
        assert b'{"ok":true}' in read_all(served.connect(stack, ALIVE[:-2] + CLOSE))
        own = read_all(served.connect(stack, quick[0][:-2] + CLOSE))
        assert own.startswith(b"HTTP/1.1 429 ")
        assert b"\r\nretry-after: 1\r\n" in own
        named = [
            quick[2][:-2] + b"X-Request-Id: %s\r\n\r\n" % name for name in (b"first", b"second")
        ]
        refused = read_all(served.connect(stack, b"".join(named)))
        assert refused.startswith(b"HTTP/1.1 503 ")
        assert b"first" in refused
        assert b"second" not in refused
        assert b"SERVICE_UNAVAILABLE" in refused
        assert b"retry-after: " in refused
        served.go.set()
        assert all(each.recv(9) == b"HTTP/1.1 " for each in waiting)


@pytest.mark.parametrize(("part", "count"), [(PART, 8), (HEAD, HTTP_THREADS + 10)])
def test_of_too_many_bodies_the_longest_give_way(served: Served, part: bytes, count: int) -> None:
    with ExitStack() as stack:
        slow = [served.connect(stack, part) for _ in range(count)]
        assert read_all(slow[0]).startswith(b"HTTP/1.1 503 ")
        assert served.ask(UPLOAD + b"x" * BODY_BYTES_MAX) == b"HTTP/1.1 200"
        slow[-1].sendall(b"x" * (BODY_BYTES_MAX // 4))
        assert slow[-1].recv(12) == b"HTTP/1.1 200"


def test_of_too_many_replies_that_nobody_takes_the_longest_give_way(served: Served) -> None:
    with ExitStack() as stack:
        untaken = list[socket.socket]()
        for _ in range(4):  # One after the other: what is sent counts from the next turn on.
            untaken.append(served.connect(stack, WHOLE))
            assert untaken[-1].recv(12) == b"HTTP/1.1 200"
        with suppress(ConnectionResetError):
            assert len(read_all(untaken[0])) < LARGE_BYTES
        assert served.ask() == b"HTTP/1.1 200"


@pytest.mark.parametrize("more", [b"", b"Connection: upgrade\r\nUpgrade: a\r\n"])
def test_of_many_requests_at_once_few_are_read_before_their_turn(
    served: Served, more: bytes
) -> None:
    one = QUICK[:-2] + more + b"\r\n"
    count = 60_000 // len(one)
    with ExitStack() as stack:
        connection = served.connect(stack, WAIT + one * count + QUICK[:-2] + CLOSE)
        wait_until(lambda: served.at_work == 1)
        gc.collect()  # What other tests have left is nobody's.
        read = sum(isinstance(each, server.Cycle) for each in gc.get_objects())
        assert 0 < read <= server.PARSE_BYTES // len(one) + 2
        served.go.set()
        assert read_all(connection).count(b"HTTP/1.1 200 OK\r\n") == count + 2


def test_of_a_request_that_was_answered_an_idle_connection_holds_nothing(served: Served) -> None:
    with ExitStack() as stack:
        idle = served.connect(stack, UPLOAD + b"x" * BODY_BYTES_MAX)
        assert idle.recv(12) == b"HTTP/1.1 200"
        cycles = [each for each in gc.get_objects() if isinstance(each, server.Cycle)]
        assert 0 < max(len(repr(each.scope)) for each in cycles) < 200


def test_who_asks_a_thousand_times_at_once_whether_it_lives_delays_nobody(served: Served) -> None:
    with ExitStack() as stack:
        greedy = [served.connect(stack, ALIVE * 1_000) for _ in range(4)]
        assert served.ask() == b"HTTP/1.1 200"
        for each in greedy:
            found = b""
            while found.count(b'{"ok":true}') < 1_000:
                found += each.recv(65_536)
    assert len(served.counted) == 4_000


def test_of_too_many_connections_those_that_wait_longest_give_way(served: Served) -> None:
    with ExitStack() as stack:
        first = served.connect(stack, WAIT)
        wait_until(lambda: served.at_work == 1)
        idle = []
        for _ in range(HTTP_THREADS + 19):
            idle.append(served.connect(stack, ALIVE))
            while b'{"ok":true}' not in idle[-1].recv(65_536):
                pass
        assert served.ask() == b"HTTP/1.1 200"
        wait_until(is_closed(idle[0]))
        assert not is_closed(idle[-1])()
        served.go.set()
        assert first.recv(12) == b"HTTP/1.1 200"


def test_a_client_that_leaves_in_the_midst_of_a_reply_costs_a_thread_nothing(
    served: Served,
) -> None:
    for _ in range(HTTP_THREADS + 1):
        with ExitStack() as stack:
            served.connect(stack, QUICK)
            served.connect(stack, LARGE)
    assert served.ask() == b"HTTP/1.1 200"


def test_the_loop_ticks_though_the_clock_of_the_machine_was_set_back(served: Served) -> None:
    """Uvicorn compares times of day; without ticks late work never ends, and systemd kills us."""
    served.server.last_notified = time.time() + 3600.0
    ticked = Event()
    served.server.on_second = ticked.set
    assert ticked.wait(20)
