"""The front holds a bounded number of bytes and ends cleanly, with an application that waits."""

import gc
import socket
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from threading import Event, Thread
from typing import Any
from wsgiref.types import StartResponse

import pytest

from app.http.edge import front as front_module
from app.http.edge import request_threads
from app.http.edge.front import Front
from app.http.edge.input import BODY_BYTES_MAX
from app.http.edge.listening import bind, listen
from app.http.edge.own_replies import OwnReplies
from app.http.edge.request_threads import Request, RequestThreads
from app.settings import HTTP_THREADS
from domain.cause import utc_now
from tests.installation import wait_until

ALIVE = b"GET /livez HTTP/1.1\r\nHost: a\r\n\r\n"
WAIT = b"GET /wait HTTP/1.1\r\nHost: a\r\n\r\n"
QUICK = b"GET /quick HTTP/1.1\r\nHost: a\r\n\r\n"
CLOSE = b"Connection: close\r\n\r\n"
UPLOAD = b"POST /quick HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n" % BODY_BYTES_MAX


class Served:
    """A front in a thread; requests of `/wait` are answered when `go` is set, in two parts."""

    def __init__(self) -> None:
        self.go = Event()
        self.at_work = 0
        listeners = bind("127.0.0.1", 0)
        listen(listeners, "127.0.0.1", 0)
        address = listeners[0].getsockname()
        threads = RequestThreads(self._answer, address, many=False)
        self.front = Front(listeners, threads, OwnReplies(utc_now), read_s=10, finish_s=10)
        self.address = ("127.0.0.1", int(address[1]))
        self.thread = Thread(target=self.front.run)
        self.thread.start()

    def connect(self, stack: ExitStack, sent: bytes) -> socket.socket:
        connection = socket.create_connection(self.address, timeout=10)
        stack.enter_context(connection)
        connection.sendall(sent)
        return connection

    def _answer(self, environ: dict[str, Any], start: StartResponse) -> Iterable[bytes]:
        start("200 OK", [("Content-Type", "text/plain")])
        yield b"first "
        if environ["PATH_INFO"] == "/wait":
            self.at_work += 1
            assert self.go.wait(20)
        yield b"second"


@pytest.fixture
def served(monkeypatch: pytest.MonkeyPatch) -> Iterator[Served]:
    """Serve with bounds that are small enough to be met."""
    monkeypatch.setattr(front_module, "HELD_BYTES_MAX", 4 * BODY_BYTES_MAX)
    monkeypatch.setattr(front_module, "RECOUNT_BYTES", BODY_BYTES_MAX // 4)
    monkeypatch.setattr(front_module, "CONNECTIONS_MAX", HTTP_THREADS + 20)
    monkeypatch.setattr(front_module, "ROOM_MADE", 5)
    made = Served()
    yield made
    made.go.set()
    made.front.stop()
    made.thread.join(15)
    assert not made.thread.is_alive()


def requests_read() -> int:
    gc.collect()  # What other tests have left is nobody's.
    return sum(isinstance(each, Request) for each in gc.get_objects())


def read_all(connection: socket.socket) -> bytes:
    received = b""
    while block := connection.recv(65_536):
        received += block
    return received


def is_closed(connection: socket.socket) -> Callable[[], bool]:
    connection.settimeout(0)

    def look() -> bool:
        try:
            return connection.recv(65_536) == b""
        except BlockingIOError:
            return False

    return look


def test_what_is_at_work_at_the_end_is_answered(served: Served) -> None:
    with ExitStack() as stack:
        working = served.connect(stack, WAIT)
        idle = served.connect(stack, ALIVE)
        half = served.connect(stack, WAIT[:20])
        wait_until(lambda: served.at_work == 1)
        served.front.stop()
        wait_until(is_closed(idle))
        wait_until(is_closed(half))
        with pytest.raises(OSError, match="refused"):
            socket.create_connection(served.address)
        served.go.set()
        assert read_all(working).endswith(b"6\r\nfirst \r\n6\r\nsecond\r\n0\r\n\r\n")
    served.thread.join(10)
    assert not served.thread.is_alive()


def test_more_requests_than_may_wait_are_refused_and_the_process_says_that_it_lives(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    with ExitStack() as stack:
        for number in range(1, HTTP_THREADS + 1):
            served.connect(stack, WAIT)
            wait_until(lambda number=number: served.at_work == number)
        monkeypatch.setattr(request_threads, "WAITING_REQUESTS_MAX", 3)
        waiting = [served.connect(stack, QUICK) for _ in range(3)]
        assert b'{"ok":true}' in served.connect(stack, ALIVE).recv(65_536)
        named = [QUICK[:-2] + b"X-Request-Id: %s\r\n\r\n" % name for name in (b"first", b"second")]
        refused = read_all(served.connect(stack, b"".join(named)))
        assert refused.startswith(b"HTTP/1.1 503 ")
        assert b"first" in refused
        assert b"second" not in refused
        assert b"SERVICE_UNAVAILABLE" in refused
        assert b"Retry-After: " in refused
        served.go.set()
        assert all(each.recv(9) == b"HTTP/1.1 " for each in waiting)


def test_of_too_many_bodies_the_longest_under_way_give_way(served: Served) -> None:
    with ExitStack() as stack:
        part = UPLOAD + b"x" * (BODY_BYTES_MAX * 3 // 4)
        slow = [served.connect(stack, part) for _ in range(8)]
        assert read_all(slow[0]).startswith(b"HTTP/1.1 503 ")
        whole = served.connect(stack, UPLOAD + b"x" * BODY_BYTES_MAX)
        assert whole.recv(12) == b"HTTP/1.1 200"
        slow[-1].sendall(b"x" * (BODY_BYTES_MAX - BODY_BYTES_MAX * 3 // 4))
        assert slow[-1].recv(12) == b"HTTP/1.1 200"


@pytest.mark.parametrize("more", [b"", b"Connection: upgrade\r\nUpgrade: a\r\n"])
def test_of_many_requests_at_once_few_are_read_before_their_turn(
    served: Served, more: bytes
) -> None:
    one = QUICK[:-2] + more + b"\r\n"
    count = 60_000 // len(one)
    with ExitStack() as stack:
        connection = served.connect(stack, WAIT + one * count + QUICK[:-2] + CLOSE)
        wait_until(lambda: served.at_work == 1)
        read = requests_read()
        assert 0 < read <= front_module.PARSE_BYTES // len(one) + 2
        served.go.set()
        assert read_all(connection).count(b"HTTP/1.1 200 OK\r\n") == count + 2


def test_who_asks_a_thousand_times_at_once_whether_it_lives_delays_nobody(served: Served) -> None:
    answered: list[object] = []
    served.front.replies = OwnReplies(utc_now, count=lambda *each: answered.append(each))
    with ExitStack() as stack:
        greedy = [served.connect(stack, ALIVE * 1_000) for _ in range(4)]
        assert served.connect(stack, QUICK).recv(12) == b"HTTP/1.1 200"
        assert len(answered) < 1_000
        for each in greedy:
            received = b""
            while received.count(b'{"ok":true}') < 1_000:
                received += each.recv(65_536)


def test_of_too_many_connections_the_longest_idle_give_way(served: Served) -> None:
    with ExitStack() as stack:
        first = served.connect(stack, WAIT)
        wait_until(lambda: served.at_work == 1)
        idle = []
        for _ in range(HTTP_THREADS + 19):
            idle.append(served.connect(stack, ALIVE))
            assert b'{"ok":true}' in idle[-1].recv(65_536)
        last = served.connect(stack, QUICK)
        assert last.recv(12) == b"HTTP/1.1 200"
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
    with ExitStack() as stack:
        assert served.connect(stack, QUICK).recv(12) == b"HTTP/1.1 200"
