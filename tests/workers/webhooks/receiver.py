"""A receiver of webhooks on a real socket: it keeps what it got, answers, fails or hangs."""

import asyncio
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from threading import Thread
from typing import Any, NamedTuple

import msgspec


class Got(NamedTuple):
    """One request: its `webhook-id`, its body, and when it came on the monotonic clock."""

    id: str
    type: str
    data: dict[str, Any]
    at: float


class Receiver:
    """Answers each path by a function of what it got, the newest last; None: never."""

    def __init__(self) -> None:
        self.got: defaultdict[str, list[Got]] = defaultdict(list)
        self.answers: dict[str, Callable[[list[Got]], int | None]] = {}
        self._loop = asyncio.new_event_loop()
        self._open: set[asyncio.Task[None]] = set()
        self.port = 0

    def url(self, path: str) -> str:
        return f"http://127.0.0.1:{self.port}{path}"

    @contextmanager
    def running(self) -> Iterator["Receiver"]:
        thread = Thread(target=self._run, daemon=True)
        server = self._loop.run_until_complete(asyncio.start_server(self._take, "127.0.0.1", 0))
        self.port = server.sockets[0].getsockname()[1]
        thread.start()
        try:
            yield self
        finally:
            self._loop.call_soon_threadsafe(self._loop.stop)
            thread.join()
            server.close()
            self._loop.run_until_complete(self._end())
            self._loop.close()

    def _run(self) -> None:
        self._loop.run_forever()

    async def _end(self) -> None:
        for each in self._open:
            each.cancel()
        await asyncio.gather(*self._open, return_exceptions=True)

    async def _take(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._open.add(task)
        with suppress(OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
            await self._answer(reader, writer)
        writer.close()
        self._open.discard(task)

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        first, *lines = head.splitlines()
        path = first.split()[1]
        headers = {
            name.lower(): value.strip()
            for name, _, value in (each.partition(":") for each in lines)
        }
        body = msgspec.json.decode(await reader.readexactly(int(headers["content-length"])))
        got = Got(headers["webhook-id"], body["type"], body["data"], time.monotonic())
        self.got[path].append(got)
        status = self.answers.get(path, lambda _: 200)(self.got[path])
        if status is None:
            await reader.read()  # Until the sender has had enough.
            return
        writer.write(
            f"HTTP/1.1 {status} X\r\nContent-Length: 0\r\nConnection: close\r\n\r\n".encode()
        )
        await writer.drain()
