"""The server, whose one thread, the loop, holds every connection; and its sockets."""

import asyncio
import logging
import socket
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import Any

import uvloop

from app.http.server.connection import Connection, Load
from app.http.server.gateway import Gateway
from app.settings import Settings, WrongSetting
from app.watch.trouble import log_place

ACCEPT_MAX = 1024  # Connections that wait to be accepted.
LOOKS_A_SECOND = 10  # For the end.
# Beside threads that compute, the loop waits so long for the interpreter at each event. At Python's
# 5 ms, a request among 500 for large replies took three times as long.
SWITCH_S = 0.0005

logger = logging.getLogger(__name__)


class Server:
    """Listens, and has requests answered until it is stopped; then ends within `finish_s`."""

    def __init__(
        self,
        listeners: Sequence[socket.socket],
        gateway: Gateway,
        settings: Settings,
        finish_s: float,
        shown: Callable[[int], object] = int,
    ) -> None:
        """`shown` is given the number of open connections, each time that it changes."""
        self.addresses = [each.getsockname() for each in listeners]
        self.on_second: Callable[[], object] = lambda: None  # Called by the loop.
        self._listeners, self._gateway, self._finish_s = listeners, gateway, finish_s
        self._load, self._stops = Load(shown), False
        limits = (settings.request_read_s, settings.keep_alive_s)
        self._connect = partial(Connection, gateway, self._load, *limits)

    def run(self) -> None:
        """Serve until `stop`; then finish what has begun.

        The loop has a thread of its own, because in the main thread it would take over signals.
        """
        sys.setswitchinterval(SWITCH_S)
        try:
            with ThreadPoolExecutor(1, "loop") as thread:
                thread.submit(self._run).result()
        finally:
            self._gateway.stop()

    def stop(self) -> None:
        """Accept no more requests; any thread and any signal handler may call this."""
        self._stops = True

    def _run(self) -> None:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.get_loop().set_exception_handler(_log_failure)
            runner.run(self._serve())

    async def _serve(self) -> None:
        loop = asyncio.get_running_loop()
        accepting = [
            await loop.create_server(self._connect, sock=each, backlog=ACCEPT_MAX)
            for each in self._listeners
        ]
        looks = 0
        while not self._stops:
            if looks % LOOKS_A_SECOND == 0:
                self.on_second()
                self._gateway.expire()
            looks += 1
            await asyncio.sleep(1 / LOOKS_A_SECOND)
        for each in accepting:
            each.close()
        self._gateway.end_waits()
        for connection in [*self._load.connections]:
            connection.shutdown()
        if self._load.tasks:  # The runner cancels those that are left then.
            await asyncio.wait(self._load.tasks, timeout=self._finish_s)


def bind(host: str, port: int, *, shared: bool = False) -> list[socket.socket]:
    """Return sockets for every address of a host; they do not listen yet.

    Of processes that all bind a port as `shared`, the kernel gives each connection to one.
    """
    opened: list[socket.socket] = []
    with ExitStack() as failed, _port_of(host, port):
        found = socket.getaddrinfo(
            host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )
        addresses = dict.fromkeys((family, address) for family, *_, address in found)
        for family, address in addresses:
            opened.append(failed.enter_context(socket.socket(family)))
            opened[-1].setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            opened[-1].setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, shared)
            if family == socket.AF_INET6 and len(addresses) > 1:
                opened[-1].setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
            opened[-1].bind(address)
            opened[-1].settimeout(0)
        failed.pop_all()
    return opened


def listen(bound: list[socket.socket], host: str, port: int) -> None:
    """Start to listen; another process may have taken the port."""
    with _port_of(host, port):
        for each in bound:
            each.listen(ACCEPT_MAX)


@contextmanager
def _port_of(host: str, port: int) -> Iterator[None]:
    """Raise WrongSetting for what the system says of a port."""
    try:
        yield
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else "no such address"
        text = f"cannot listen on HOST {host} PORT {port}: {reason}"
        raise WrongSetting(text) from error


def _log_failure(_: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    error = context.get("exception")
    if isinstance(error, Exception) and not isinstance(error, OSError):
        log_place(logger, error)
