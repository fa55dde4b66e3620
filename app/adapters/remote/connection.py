"""Connections to a provider, on which no part of a call outlasts its time-out.

urllib3 limits each single read, so a server that sends byte by byte could hold a caller for ever.
It cannot limit the resolution of names. Here the time-out for connecting covers names, all
addresses and the handshake together, and the time-out for a reply covers the whole reply.
"""

import logging
import socket
import ssl
import time
from collections.abc import Sequence
from math import inf
from typing import Any, cast

from urllib3 import BaseHTTPResponse, HTTPConnectionPool, HTTPSConnectionPool, Timeout
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.exceptions import ClosedPoolError, HTTPError
from urllib3.util.connection import create_connection

from app.adapters.remote.api import RemoteRules
from app.adapters.remote.exchange import Origin, Outcome, Reply, Request
from app.adapters.remote.names import Resolve, addresses_of

ADDRESSES_MAX = 4  # Tried one after the other within one time-out.
CONNECT_S = 2.0  # A lost SYN is sent again after 1 s, so this allows for one.
IDLE_S = 20.0  # What was idle for longer is not used again: something between may have dropped it.
CHUNK_BYTES = 65_536

# urllib3 logs URLs with their query, which holds phone numbers.
logging.getLogger("urllib3").setLevel(logging.CRITICAL)


class NotConnected(HTTPError):
    """Raised when there is no connection, so that nothing can have been sent; the text says why."""


class TooLong(OSError):
    """Raised when a server sends more bytes than a connection may read."""


class _TimedSocket(socket.socket):
    """A socket whose time-out covers all later operations together."""

    bytes_left = inf
    _ends_s = 0.0

    def settimeout(self, timeout_s: float | None) -> None:
        """Start the clock; urllib3 calls this before it sends and before it reads a reply."""
        assert timeout_s is not None
        self._ends_s = time.monotonic() + timeout_s
        super().settimeout(timeout_s)

    def sendall(self, data: Any, *options: Any) -> None:
        self._allow()
        super().sendall(data, *options)

    def recv_into(self, *options: Any) -> int:
        """Read as every reply is read: within the rest of the time, and of the bytes."""
        self._allow()
        bytes_read = super().recv_into(*options)
        self.bytes_left -= bytes_read
        if self.bytes_left < 0:
            raise TooLong
        return bytes_read

    def _allow(self) -> None:
        """Give the next operation the rest of the time; raises TimeoutError if there is none."""
        left_s = self._ends_s - time.monotonic()
        if left_s <= 0:
            raise TimeoutError
        super().settimeout(left_s)


class _TimedTls(_TimedSocket, ssl.SSLSocket):
    """The same over TLS."""


class Plain(HTTPConnection):
    """A connection without TLS, to a server on this machine or where http is allowed."""

    resolve: Resolve = addresses_of
    bytes_max: float = inf  # Read from one connection, heads included.
    used_s = 0.0

    def _new_conn(self) -> socket.socket:
        """Connect to the first address that answers, within the time-out altogether."""
        ends_s = time.monotonic() + cast("float", self.timeout)
        addresses = (self.resolve(self.host, ends_s) or ())[:ADDRESSES_MAX]
        failed = TimeoutError.__name__ if addresses else "the name cannot be resolved"
        for tried, address in enumerate(addresses):
            left_s = (ends_s - time.monotonic()) / (len(addresses) - tried)
            if left_s <= 0:
                break
            try:
                made = create_connection(
                    (address, self.port), left_s, socket_options=self.socket_options
                )
            except OSError as error:
                failed = type(error).__name__
                continue
            timed = _TimedSocket(fileno=made.detach())
            timed.settimeout(max(ends_s - time.monotonic(), 0.001))  # The rest is for TLS.
            return timed
        raise NotConnected(failed)

    def connect(self) -> None:
        """Connect, or raise NotConnected with the type of the error."""
        failed = ""
        try:
            super().connect()
        except NotConnected as error:
            failed = str(error)
        except (OSError, HTTPError) as error:
            failed = type(error).__name__
        if failed:
            self.close()
            raise NotConnected(failed)
        assert isinstance(self.sock, _TimedSocket)
        self.sock.bytes_left = self.bytes_max
        self.sock.settimeout(cast("float", self.timeout))  # urllib3 may send before it sets one.

    @property
    def is_connected(self) -> bool:
        return super().is_connected and time.monotonic() - self.used_s < IDLE_S

    def getresponse(self) -> Any:
        self.used_s = time.monotonic()
        return super().getresponse()


class Tls(Plain, HTTPSConnection):
    """A connection with TLS; the certificate has to be that of the server's name."""


def exchange(
    origin: Origin,
    request: Request,
    ends_s: float,
    context: ssl.SSLContext | None,
    addresses: Sequence[str] = (),
) -> int:
    """Send once on a new connection, and return the status; `addresses` replace those of the name.

    Raises NotConnected, TooLong, another OSError, HTTPError, HTTPException or ValueError.
    """
    connection = (Plain if context is None else Tls)(origin.host, origin.port, **_secured(context))
    if addresses:
        connection.resolve = lambda *_: addresses
    connection.bytes_max = 2 * CHUNK_BYTES
    try:
        connection.timeout = _left_s(ends_s)
        connection.connect()
        connection.timeout = _left_s(ends_s)
        parts = (request.method, request.url, request.body, request.headers)
        connection.request(*parts, preload_content=False, decode_content=False)
        connection.timeout = _left_s(ends_s)
        answer = connection.getresponse()
        left = CHUNK_BYTES  # We do not use the body, so the rest need not be read.
        while part := answer.read(left):
            left -= len(part)
        return int(answer.status)
    finally:
        connection.close()


def _left_s(ends_s: float) -> float:
    left_s = ends_s - time.monotonic()
    if left_s <= 0:
        raise TimeoutError
    return left_s


class Transport:
    """Connections to one origin; thread-safe. Callers limit how many are in use.

    Reads reuse connections. A change has a new connection. On a reused one, a late second copy of
    an earlier reply could be mistaken for its outcome, and the server may close it just when we
    send.
    """

    def __init__(self, origin: Origin, rules: RemoteRules) -> None:
        self._origin, self._bytes_max = origin, rules.body_bytes_max
        # Made once: loading the certificates of all authorities takes longer than a handshake.
        self._context = ssl.create_default_context() if origin.scheme == "https" else None
        self._pooled = self._pool(rules.calls_max)

    def send(self, request: Request, timeout_s: float, *, alone: bool) -> Reply | Outcome:
        """Send once, on a new connection if `alone`; return the complete reply, or the outcome."""
        pool, last = (self._pool(1), {"Connection": "close"}) if alone else (self._pooled, {})
        try:
            answer = pool.urlopen(
                request.method,
                request.url,
                body=request.body,
                headers={**request.headers, **last},
                timeout=Timeout(total=timeout_s, connect=CONNECT_S),
                redirect=False,
                preload_content=False,
            )
            return self._whole(answer)
        except ClosedPoolError:
            return "held"
        except NotConnected:
            return "unreachable"
        except (OSError, HTTPError):
            return "lost"
        finally:
            if alone:
                pool.close()

    def close(self) -> None:
        """Close idle connections; those in use are closed when their calls end."""
        self._pooled.close()

    def _pool(self, size: int) -> HTTPConnectionPool:
        kind = HTTPConnectionPool if self._context is None else HTTPSConnectionPool
        host, port = self._origin.host, self._origin.port
        pool = kind(host, port, maxsize=size, retries=False, **_secured(self._context))
        pool.ConnectionCls = Plain if self._context is None else Tls
        return pool

    def _whole(self, answer: BaseHTTPResponse) -> Reply | Outcome:
        """Read a reply to its end, within its limit; only then can the connection be used again."""
        body = bytearray()
        with answer:  # Closes a connection whose reply was not read to its end.
            while chunk := answer.read(CHUNK_BYTES, decode_content=True):
                body += chunk
                if len(body) > self._bytes_max:
                    return "malformed"
        headers = {name.lower(): value for name, value in answer.headers.items()}
        return Reply(answer.status, headers, bytes(body))


def _secured(context: ssl.SSLContext | None) -> dict[str, Any]:
    """Return what makes a connection one of TLS, whose sockets are timed like all others."""
    if context is None:
        return {}
    context.sslsocket_class = _TimedTls
    return {"ssl_context": context}
