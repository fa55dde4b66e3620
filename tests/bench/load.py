"""Load in a process of its own: kept connections, each sending its next request on each answer.

`python -m tests.bench.load` reads a `Load` as JSON from standard input and prints the rate.
"""

import asyncio
import subprocess
import sys
from collections.abc import Sequence
from functools import partial
from itertools import cycle
from time import perf_counter

import msgspec

LOAD_S_MAX = 120.0


class Load(msgspec.Struct, frozen=True):
    """One connection for each token; all ask the same paths, each from another one on."""

    host: str
    port: int
    duration_s: float
    tokens: Sequence[str]
    paths: Sequence[str]


def requests_per_second(load: Load) -> float:
    """Run the load in another process and return the rate that it has reached."""
    done = subprocess.run(
        [sys.executable, "-m", __name__],
        input=msgspec.json.encode(load),
        stdout=subprocess.PIPE,
        timeout=LOAD_S_MAX,
        check=True,
    )
    return float(done.stdout)


class Connection(asyncio.Protocol):
    """Counts answers with status 200; any other one ends the measurement."""

    def __init__(self, load: Load, token: str, first: int) -> None:
        self.count = 0
        self.failed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        tail = f" HTTP/1.1\r\nHost: {load.host}\r\nAuthorization: Bearer {token}\r\n"
        tail += "Content-Length: 0\r\n\r\n"
        paths = [*load.paths[first:], *load.paths[:first]]
        self._requests = cycle([f"POST {path}{tail}".encode() for path in paths])
        self._received = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        transport.write(next(self._requests))

    def data_received(self, data: bytes) -> None:
        self._received += data
        head, mark, body = self._received.partition(b"\r\n\r\n")
        if not mark or len(body) < _content_length(head):
            return
        if not head.startswith(b"HTTP/1.1 200 "):
            self._fail(self._received.decode(errors="replace"))
            return
        self._received = b""
        self.count += 1
        self._transport.write(next(self._requests))

    def connection_lost(self, error: Exception | None) -> None:
        self._fail(f"the connection was lost: {error}")

    def _fail(self, reason: str) -> None:
        if not self.failed.done():
            self.failed.set_exception(RuntimeError(reason))


def _content_length(head: bytes) -> int:
    _, _, rest = head.lower().partition(b"content-length:")
    return int(rest.partition(b"\r\n")[0])


async def run(load: Load) -> float:
    """Keep all connections busy for the duration; raises RuntimeError for a wrong answer."""
    loop = asyncio.get_running_loop()
    connections = []
    started = perf_counter()
    for place, token in enumerate(load.tokens):
        first = place * len(load.paths) // len(load.tokens)
        _, connection = await loop.create_connection(
            partial(Connection, load, token, first),
            load.host,
            load.port,
        )
        connections.append(connection)
    failures = [connection.failed for connection in connections]
    done, _ = await asyncio.wait(failures, timeout=load.duration_s)
    for each in done:
        each.result()
    return sum(connection.count for connection in connections) / (perf_counter() - started)


if __name__ == "__main__":
    print(asyncio.run(run(msgspec.json.decode(sys.stdin.buffer.read(), type=Load))))
