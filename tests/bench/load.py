"""Load in a process of its own, over kept connections: as much as there can be, or at a pace.

`python -m tests.bench.load` reads a `Load` as JSON from standard input and prints an `Outcome`.
"""

import asyncio
import random
import subprocess
import sys
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import count
from time import perf_counter
from typing import cast
from uuid import uuid4

import msgspec
import uvloop

from tests.bench.measure import percentile

LOAD_S_MAX = 120.0
ANSWERS_MIN = 100  # A server that has just started may take its time.
SEED = 1


class Load(msgspec.Struct, frozen=True):
    """One connection for each token; all ask the same paths, each from another one on.

    `keyed`: each request has an Idempotency-Key of its own; `accept` is the type it asks for. An
    empty token is none. `of_strangers`: any answer is one, and a lost connection is made anew.
    `per_s`: requests come by chance, so
    many a second, however late the answers are; without it each answer lets the next one go.
    """

    host: str
    port: int
    duration_s: float
    tokens: Sequence[str]
    paths: Sequence[str]
    keyed: bool = False
    per_s: float | None = None
    method: str = "POST"
    accept: str = "*/*"
    of_strangers: bool = False


class Outcome(msgspec.Struct, frozen=True):
    """How many were answered, and how long one took; at a pace with the wait for a connection."""

    answered: int
    took_s: float
    p50_ms: float
    p99_ms: float

    @property
    def per_s(self) -> float:
        return self.answered / self.took_s


@contextmanager
def beside(load: Load) -> Iterator[None]:
    """Run a load for as long as the block takes."""
    process = subprocess.Popen(
        [sys.executable, "-m", __name__], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL
    )
    try:
        assert process.stdin is not None
        process.stdin.write(msgspec.json.encode(load))
        process.stdin.close()
        yield
        assert process.poll() is None, "the load has ended before"
    finally:
        process.kill()
        process.wait()


def outcome_of(load: Load) -> Outcome:
    """Run the load in another process; any answer but 200 ends the measurement."""
    done = subprocess.run(
        [sys.executable, "-m", __name__],
        input=msgspec.json.encode(load),
        stdout=subprocess.PIPE,
        timeout=LOAD_S_MAX,
        check=True,
    )
    return msgspec.json.decode(done.stdout, type=Outcome)


class Crowd:
    """All connections, what waits for one of them, and the times of what was answered."""

    def __init__(self, load: Load) -> None:
        self.load = load
        self.times_ms: list[float] = []
        self.opening = set[asyncio.Task[None]]()
        self.failed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._idle: deque[Connection] = deque()
        self._waiting: deque[float] = deque()

    async def run(self) -> Outcome:
        """Keep going for the duration; raises RuntimeError for a wrong answer."""
        loop = asyncio.get_running_loop()
        for place, token in enumerate(self.load.tokens):
            self._idle.append(await self.connect(token, place))
        began_s = perf_counter()
        if self.load.per_s is not None:
            pacing = loop.create_task(self._pace(self.load.per_s))
        else:
            pacing = None
            while self._idle:
                self._idle.popleft().send(perf_counter())
        while len(self.times_ms) < ANSWERS_MIN and not self.failed.done():
            await asyncio.wait([self.failed], timeout=self.load.duration_s)
        if pacing is not None:
            pacing.cancel()
        if self.failed.done():
            self.failed.result()
        return self._outcome(began_s)

    def _outcome(self, began_s: float) -> Outcome:
        ended_s = perf_counter()
        # What nobody has taken up yet has waited that long at least.
        times_ms = [*self.times_ms, *((ended_s - due_s) * 1_000 for due_s in self._waiting)]
        figures = [percentile(times_ms, percent) for percent in (50, 99)]
        return Outcome(len(self.times_ms), ended_s - began_s, *figures)

    async def _pace(self, per_s: float) -> None:
        chance = random.Random(SEED)
        due_s = perf_counter()
        while not self.failed.done():
            now_s = perf_counter()
            while due_s <= now_s:
                if self._idle:
                    self._idle.popleft().send(now_s)
                else:
                    self._waiting.append(now_s)
                due_s += chance.expovariate(per_s)
            await asyncio.wait([self.failed], timeout=due_s - now_s)

    async def connect(self, token: str, place: int) -> "Connection":
        loop, load = asyncio.get_running_loop(), self.load
        make = partial(Connection, self, token, place)
        _, connection = await loop.create_connection(make, load.host, load.port)
        return connection

    def connect_again(self, token: str, place: int) -> None:
        """Take the place of a connection that was closed."""

        async def go_on() -> None:
            connection = await self.connect(token, place)
            connection.send(perf_counter())

        task = asyncio.get_running_loop().create_task(go_on())
        self.opening.add(task)
        task.add_done_callback(self.opening.discard)

    def answered(self, connection: "Connection", asked_s: float) -> None:
        """Take the time, and let the connection ask again when something is due."""
        now_s = perf_counter()
        self.times_ms.append((now_s - asked_s) * 1_000)
        if self.load.per_s is None:
            connection.send(now_s)
        elif self._waiting:
            connection.send(self._waiting.popleft())
        else:
            self._idle.append(connection)

    def fail(self, reason: str) -> None:
        """End the measurement."""
        if not self.failed.done():
            self.failed.set_exception(RuntimeError(reason))


class Connection(asyncio.Protocol):
    """One request after the other."""

    def __init__(self, crowd: Crowd, token: str, place: int) -> None:
        self._crowd, self._token, self._place = crowd, token, place
        load = crowd.load
        self._places = count(place * len(load.paths) // len(load.tokens))
        self._tail = f" HTTP/1.1\r\nHost: {load.host}\r\nAccept: {load.accept}\r\n"
        self._tail += f"Authorization: Bearer {token}\r\n" if token else ""
        self._tail += "Content-Length: 0\r\n"
        self._asked_s = 0.0
        self._received = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)  # uvloop's own is no subclass.

    def send(self, asked_s: float) -> None:
        """Ask the next path; the answer takes its time from that moment on."""
        self._asked_s = asked_s
        load = self._crowd.load
        path = load.paths[next(self._places) % len(load.paths)]
        key = f"Idempotency-Key: {uuid4()}\r\n" if load.keyed else ""
        self._transport.write(f"{load.method} {path}{self._tail}{key}\r\n".encode())

    def data_received(self, data: bytes) -> None:
        self._received += data
        head, mark, body = self._received.partition(b"\r\n\r\n")
        if not mark or len(body) < _content_length(head):
            return
        if not (head.startswith(b"HTTP/1.1 200 ") or self._crowd.load.of_strangers):
            self._crowd.fail(self._received.decode(errors="replace"))
            return
        self._received = b""
        self._crowd.answered(self, self._asked_s)

    def connection_lost(self, error: Exception | None) -> None:
        if self._crowd.load.of_strangers:
            self._crowd.connect_again(self._token, self._place)
            return
        self._crowd.fail(f"the connection was lost: {error}")


def _content_length(head: bytes) -> int:
    _, _, rest = head.lower().partition(b"content-length:")
    return int(rest.partition(b"\r\n")[0])


async def _run(load: Load) -> Outcome:
    return await Crowd(load).run()


if __name__ == "__main__":
    asked = msgspec.json.decode(sys.stdin.buffer.read(), type=Load)
    print(msgspec.json.encode(uvloop.run(_run(asked))).decode())
