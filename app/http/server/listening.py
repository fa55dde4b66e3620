"""Listens, and has uvicorn on uvloop answer until told to stop."""

import asyncio
import logging
import socket
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, cast

import uvicorn
import uvloop

from app.http.server.connection import Connection, Load
from app.http.server.gateway import Gateway
from app.http.server.loop import Loop
from app.settings import Settings, WrongSetting
from app.watch.trouble import log_traceback

BACKLOG = 1024
TICKS = 10  # Uvicorn looks after itself so often in a second.
# Beside threads that compute, the loop waits so long for the interpreter at each event. At Python's
# 5 ms, a request among 500 for large replies took three times as long.
SWITCH_S = 0.0005

logger = logging.getLogger(__name__)


def bind(host: str, port: int, *, shared: bool = False) -> list[socket.socket]:
    """Return sockets for every address of a host; they do not listen yet.

    Of processes that all bind a port as `shared`, the kernel gives each connection to one. Raises
    WrongSetting when the port is not available.
    """
    opened: list[socket.socket] = []
    try:
        found = socket.getaddrinfo(
            host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )
        addresses = list(dict.fromkeys((family, address) for family, *_, address in found))
        for family, address in addresses:
            opened.append(made := socket.socket(family))
            made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, shared)
            if family == socket.AF_INET6 and len(addresses) > 1:
                made.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
            made.bind(address)
            made.settimeout(0)
    except (OSError, ValueError) as error:
        for each in opened:
            each.close()
        raise _wrong(host, port, error) from error
    return opened


def listen(bound: list[socket.socket], host: str, port: int) -> None:
    """Start to listen; another process may have taken the port."""
    try:
        for each in bound:
            each.listen(BACKLOG)
    except OSError as error:
        raise _wrong(host, port, error) from error


def _wrong(host: str, port: int, error: Exception) -> WrongSetting:
    reason = error.strerror if isinstance(error, OSError) else "no such address"
    return WrongSetting(f"cannot listen on HOST {host} PORT {port}: {reason}")


class Server(uvicorn.Server):
    """Has requests answered until it should exit; then ends within `finish_s`."""

    def __init__(
        self,
        listeners: Sequence[socket.socket],
        loop_of: Callable[[], Loop],
        settings: Settings,
        finish_s: float,
    ) -> None:
        """`loop_of` returns what answers now."""
        self.addresses = [each.getsockname() for each in listeners]
        self._listeners, self.gateway = [*listeners], Gateway(loop_of, self.addresses[0])
        self.on_second: Callable[[], object] = lambda: None  # Called by the loop each second.
        load = Load()
        self._is_over: Callable[[], bool] = bool
        limits = {"read_s": settings.request_read_s, "keep_alive_s": settings.keep_alive_s}
        config = uvicorn.Config(
            cast("Any", self.gateway),
            http=cast("Any", partial(Connection, load=load, **limits)),
            ws="none",
            lifespan="off",
            interface="asgi3",
            log_config=None,
            log_level=logging.CRITICAL,  # What there is to say is said by the gateway.
            proxy_headers=False,
            server_header=False,
            backlog=BACKLOG,
            timeout_graceful_shutdown=cast("int", finish_s),
            reset_contextvars=True,  # A request has no context of the one before.
        )
        super().__init__(config)
        load.connections = self.server_state.connections

    def run(self, is_over: Callable[[], bool] = bool) -> None:  # type: ignore[override]  # It has its sockets.
        """Serve until `is_over` or `should_exit`; then finish what has begun.

        The loop has a thread of its own, because in the main thread it would take over signals.
        """
        self._is_over = is_over
        sys.setswitchinterval(SWITCH_S)
        try:
            with ThreadPoolExecutor(1, "loop") as thread:
                thread.submit(self._run).result()
        finally:
            self.gateway.stop()

    async def on_tick(self, counter: int) -> bool:
        """Do what is to be done each second; tell whether it is over."""
        if counter % TICKS == 0:
            self.on_second()
            self.gateway.on_second(len(self.server_state.connections))
        return await super().on_tick(counter) or self._is_over()

    def _run(self) -> None:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.get_loop().set_exception_handler(_log_failure)
            runner.run(self.serve(self._listeners))


def _log_failure(_: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    error = context.get("exception")
    if isinstance(error, Exception) and not isinstance(error, OSError):
        log_traceback(logger, error)
