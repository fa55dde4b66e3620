"""Connections to a provider, on which no part of a call outlasts its time-out.

urllib3 limits each single read, so a server that sends byte by byte could hold a caller for ever.
It cannot limit the resolution of names. Here the time-out for connecting covers names, all
addresses and the handshake together, and the time-out for a reply covers the whole reply.
"""

import io
import logging
import socket
import ssl
import time
from collections.abc import Callable, Sequence
from ipaddress import ip_address
from math import inf
from typing import Any, cast

from urllib3 import BaseHTTPResponse, HTTPConnectionPool, HTTPSConnectionPool, Timeout
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.exceptions import ClosedPoolError, HTTPError
from urllib3.util.connection import create_connection

from app.adapters.remote.api import RemoteRules
from app.adapters.remote.reply import Reply
from app.adapters.remote.request import Origin, Outcome, Request
from app.watch.gauges import Asker, answer_of

ADDRESSES_MAX = 4  # Tried one after the other within one time-out.
CONNECT_S = 2.0  # A lost SYN is sent again after 1 s, so this allows for one.
CHUNK_BYTES = 65_536

# urllib3 logs URLs with their query, which holds phone numbers.
logging.getLogger("urllib3").setLevel(logging.CRITICAL)


Resolve = Callable[[float], Sequence[str] | None]


class NotConnected(HTTPError):
    """Raised when there is no connection, so that nothing can have been sent."""


class TooLong(OSError):
    """Raised when a server sends more bytes than a connection may read."""


class _TimedRead(io.RawIOBase):
    """Reads from a socket; every read gets only the rest of the reply's time."""

    def __init__(self, raw: io.RawIOBase, socket_: "_TimedSocket") -> None:
        self._raw = raw
        self._socket = socket_

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int | None:
        self._socket.allow()
        return self._socket.count(cast("int | None", self._raw.readinto(buffer)))

    def close(self) -> None:
        self._raw.close()
        super().close()


class _TimedSocket:
    """A socket whose time-out covers all later operations together."""

    def __init__(
        self, inner: socket.socket, silence_s: float | None, bytes_left: float = inf
    ) -> None:
        self._inner = inner
        self._silence_s = silence_s
        self._bytes_left = bytes_left
        self._ends_s = time.monotonic()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def settimeout(self, timeout_s: float | None) -> None:
        """Start the clock; urllib3 calls this before it sends and before it reads a reply."""
        assert timeout_s is not None
        self._ends_s = time.monotonic() + timeout_s
        self._inner.settimeout(timeout_s)

    def allow(self) -> None:
        """Give the next operation the rest of the time; raises TimeoutError if there is none."""
        left_s = self._ends_s - time.monotonic()
        if left_s <= 0:
            raise TimeoutError
        self._inner.settimeout(min(left_s, self._silence_s or left_s))

    def count(self, bytes_read: int | None) -> int | None:
        """Count what was read; raises TooLong past the limit."""
        self._bytes_left -= bytes_read or 0
        if self._bytes_left < 0:
            raise TooLong
        return bytes_read

    def sendall(self, data: Any) -> None:
        """Send within the rest of the time."""
        self.allow()
        self._inner.sendall(data)

    def makefile(self, mode: str, *_: object) -> io.BufferedReader:
        """Return the stream from which http.client reads a reply."""
        assert mode == "rb", mode
        raw = cast("io.RawIOBase", self._inner.makefile("rb", buffering=0))
        return io.BufferedReader(_TimedRead(raw, self))


class Plain(HTTPConnection):
    """A connection without TLS, to a server on this machine or where http is allowed."""

    resolve: Resolve  # Has a deadline for the addresses.
    silence_s: float | None
    idle_s: float
    bytes_max: float = inf  # Read from one connection, heads included.
    used_s = 0.0

    def _new_conn(self) -> socket.socket:
        """Connect to the first address that answers, within the time-out altogether."""
        ends_s = time.monotonic() + cast("float", self.timeout)
        addresses = self.resolve(ends_s)
        if not addresses:
            message = "the name cannot be resolved"
            raise NotConnected(message)
        for tried, address in enumerate(addresses):
            left_s = (ends_s - time.monotonic()) / (len(addresses) - tried)
            if left_s <= 0:
                break
            try:
                made = create_connection(
                    (address, self.port), left_s, socket_options=self.socket_options
                )
            except OSError:
                continue
            made.settimeout(max(ends_s - time.monotonic(), 0.001))  # The rest is for TLS.
            return made
        message = "no address answers"
        raise NotConnected(message)

    def connect(self) -> None:
        """Connect, or raise NotConnected."""
        failed = ""
        try:
            super().connect()
        except (OSError, HTTPError) as error:
            failed = type(error).__name__
        if failed:
            self.close()
            raise NotConnected(failed)
        timed = _TimedSocket(self.sock, self.silence_s, self.bytes_max)
        timed.settimeout(cast("float", self.timeout))  # urllib3 may send before it sets one.
        self.sock = cast("socket.socket", timed)

    @property
    def is_connected(self) -> bool:
        """Whether the connection can be used again.

        The server may close a connection that was idle for long just when we send.
        """
        return super().is_connected and time.monotonic() - self.used_s < self.idle_s

    def getresponse(self) -> Any:
        """Read the head of a reply."""
        self.used_s = time.monotonic()
        return super().getresponse()


class Tls(Plain, HTTPSConnection):
    """A connection with TLS; the certificate has to be that of the server's name."""


class Transport:
    """Connections to one origin; thread-safe. Callers limit how many are in use.

    Reads reuse connections. A change has a new connection. On a reused one, a late second copy of
    an earlier reply could be mistaken for its outcome, and the server may close it just when we
    send.
    """

    def __init__(self, origin: Origin, rules: RemoteRules) -> None:
        self._bytes_max = rules.body_bytes_max
        own = {"resolve": staticmethod(_resolver(origin.host)), "silence_s": rules.silence_s}
        # Made once: loading the certificates of all authorities takes longer than a handshake.
        context = ssl.create_default_context() if origin.scheme == "https" else None
        self._kept = _pool(origin, context, rules.calls_max, {**own, "idle_s": rules.idle_s})
        self._single = _pool(origin, context, 1, {**own, "idle_s": 0.0})  # None is used again.

    def send(self, request: Request, timeout_s: float, *, alone: bool) -> Reply | Outcome:
        """Send once, on a new connection if `alone`; return the complete reply, or the outcome."""
        pool, last = (self._single, {"Connection": "close"}) if alone else (self._kept, {})
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

    def close(self) -> None:
        """Close idle connections; those in use are closed when their calls end."""
        self._kept.close()
        self._single.close()

    def _whole(self, answer: BaseHTTPResponse) -> Reply | Outcome:
        """Read a reply to its end, within its limit; only then can the connection be used again."""
        body = bytearray()
        whole = False
        try:
            while chunk := answer.read(CHUNK_BYTES, decode_content=True):
                body += chunk
                if len(body) > self._bytes_max:
                    return "malformed"
            whole = True
        finally:
            if not whole:
                answer.close()
            answer.release_conn()
        headers = {name.lower(): value for name, value in answer.headers.items()}
        return Reply(answer.status, headers, bytes(body))


def _pool(
    origin: Origin, context: ssl.SSLContext | None, kept: int, own: dict[str, Any]
) -> HTTPConnectionPool:
    kinds: tuple[type[HTTPConnectionPool], type[Plain]] = (HTTPConnectionPool, Plain)
    tls: dict[str, Any] = {}
    if context is not None:
        kinds, tls = (HTTPSConnectionPool, Tls), {"ssl_context": context}
    made = kinds[0](origin.host, origin.port, maxsize=kept, retries=False, **tls)
    made.ConnectionCls = type("Connection", kinds[1:], own)
    return made


def _resolver(host: str) -> Resolve:
    try:
        fixed = [str(ip_address(host.strip("[]")))]
    except ValueError:
        # In a thread of its own, because the resolution of a name has no time-out.
        asker = Asker(f"addresses of {host}", lambda: _addresses(host))
        return lambda ends_s: answer_of(asker.begin(), ends_s)
    return lambda _: fixed


def _addresses(host: str) -> Sequence[str]:
    found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(each[4][0]) for each in found))[:ADDRESSES_MAX]
