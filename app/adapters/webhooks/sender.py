"""Sends a webhook to its URL, over a connection of its own to a checked address.

A partner chooses the URL, so it is not trusted: the name is resolved once, all its addresses are
checked, and the connection goes to one of them. One time limit covers everything, redirects are not
followed, proxies of the environment are not used. No error shows any part of the URL.
"""

import socket
import ssl
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from functools import cached_property
from http.client import HTTPException
from ipaddress import IPv4Address, IPv6Address, ip_address
from threading import Lock, Thread
from typing import TYPE_CHECKING, Final, Literal

from app.watch.gauges import answer_of
from domain.webhooks.destination import Destination, NotAllowed, is_public, read_destination
from domain.webhooks.ports import Sent

if TYPE_CHECKING:
    from app.adapters.remote.connection import Plain

SEND_S = 10.0  # For resolving, connecting, TLS, sending, and the whole answer together.
ANSWER_BYTES_MAX = 65_536  # Of a body; we do not use it, so the rest need not be read.
READ_BYTES_MAX = 2 * ANSWER_BYTES_MAX  # Of a connection, including the head of the answer.
# Names resolved at the same time. A name that hangs holds its thread until the system gives up,
# longer than the attempt to send; so this is more than there are threads that send.
NAMES_MAX = 256
HEADERS: Final = {
    "Content-Type": "application/json",
    "User-Agent": "carrier-links",
    "Connection": "close",
}

Address = IPv4Address | IPv6Address
Resolve = Callable[[str, float], Sequence[str] | None]
# Why there is no status; partners see these values.
Failure = Literal[
    "url_not_allowed",
    "address_not_allowed",
    "name_not_resolved",
    "not_connected",
    "tls_failed",
    "timeout",
    "connection_lost",
    "answer_too_long",
]


class Names:
    """Resolves names with a time limit. Callers with the same name wait for the same thread."""

    def __init__(self, ask: Callable[[str], Sequence[str]] | None = None) -> None:
        self._ask = ask or _addresses
        self._asked: dict[str, Future[Sequence[str]]] = {}
        self._lock = Lock()

    def __call__(self, name: str, ends_s: float) -> Sequence[str] | None:
        """Return the addresses of a name; None if they are not known by `ends_s`."""
        with self._lock:
            answer = self._asked.get(name)
            if answer is None:
                if len(self._asked) >= NAMES_MAX:
                    return None
                answer = Future()
                Thread(target=self._run, args=(name, answer), daemon=True).start()
                self._asked[name] = answer
        return answer_of(answer, ends_s)

    def _run(self, name: str, answer: "Future[Sequence[str]]") -> None:
        found: Sequence[str] = []
        try:
            found = self._ask(name)
        except (OSError, UnicodeError):
            pass  # There is no such name, or it cannot be resolved now.
        finally:
            with self._lock:
                del self._asked[name]
            answer.set_result(found)


class HttpSender:
    """Sends webhooks; thread-safe. `allow_private` is for development: see `read_destination`."""

    def __init__(  # noqa: PLR0913  # All but the first has a default.
        self,
        *,
        allow_private: bool,
        resolve: Resolve | None = None,
        may_reach: Callable[[Address], bool] | None = None,
        context: ssl.SSLContext | None = None,
        send_s: float = SEND_S,
        tell: Callable[[str], None] = lambda outcome: None,  # noqa: ARG005  # The shape of it.
    ) -> None:
        self._allow_private = allow_private
        self._resolve = resolve or Names()
        self._may_reach = may_reach or _may_reach
        self._given = context
        self._send_s = send_s
        self._tell = tell

    def send(self, url: str, headers: Mapping[str, str], body: bytes) -> Sent:
        """POST a body once; a failure is returned, not raised."""
        began_s = time.monotonic()
        found = self._send(url, headers, body, began_s + self._send_s)
        duration_ms = round((time.monotonic() - began_s) * 1000)
        self._tell(f"{found // 100}xx" if isinstance(found, int) else found)
        if isinstance(found, int):
            return Sent(found, None, duration_ms)
        return Sent(None, found, duration_ms)

    @cached_property
    def _context(self) -> ssl.SSLContext:
        """Made once: loading the certificates of all authorities takes longer than a handshake."""
        return self._given or ssl.create_default_context()

    def _send(
        self, url: str, headers: Mapping[str, str], body: bytes, ends_s: float
    ) -> int | Failure:
        try:
            destination = read_destination(url, allow_private=self._allow_private)
        except NotAllowed:
            return "url_not_allowed"
        addresses = self._addresses(destination, ends_s)
        if not addresses:
            return "name_not_resolved" if time.monotonic() < ends_s else "timeout"
        if not self._allow_private and not all(map(self._is_allowed, addresses)):
            return "address_not_allowed"
        connection = self._connection(destination, addresses)
        try:
            return _exchange(connection, destination.path, {**HEADERS, **headers}, body, ends_s)
        finally:
            connection.close()

    def _addresses(self, destination: Destination, ends_s: float) -> Sequence[str] | None:
        if destination.address is not None:
            return [str(destination.address)]
        # The last dot keeps the resolver from trying the name within our own domains.
        name = destination.host if self._allow_private else f"{destination.host}."
        return self._resolve(name, ends_s)

    def _is_allowed(self, text: str) -> bool:
        try:
            return self._may_reach(ip_address(text))
        except ValueError:
            return False

    def _connection(self, destination: Destination, addresses: Sequence[str]) -> "Plain":
        # Loaded late, so that a process that sends nothing does not load the HTTP client.
        from app.adapters.remote.connection import (  # noqa: PLC0415  # As above.
            ADDRESSES_MAX,
            Plain,
            Tls,
        )

        connection: Plain
        if destination.scheme == "https":
            connection = Tls(destination.host, destination.port, ssl_context=self._context)
        else:
            connection = Plain(destination.host, destination.port)
        # Connect to the addresses that were checked, without resolving the name again.
        connection.resolve = lambda _: addresses[:ADDRESSES_MAX]
        connection.silence_s, connection.idle_s = None, 0.0
        connection.bytes_max = READ_BYTES_MAX
        return connection


def _exchange(
    connection: "Plain", path: str, headers: Mapping[str, str], body: bytes, ends_s: float
) -> int | Failure:
    """Send and read the whole answer; return its status."""
    from urllib3.exceptions import HTTPError  # noqa: PLC0415  # As above.

    from app.adapters.remote.connection import NotConnected, TooLong  # noqa: PLC0415  # As above.

    try:
        connection.timeout = _left_s(ends_s)
        connection.connect()
        connection.timeout = _left_s(ends_s)
        connection.request("POST", path, body, headers, preload_content=False, decode_content=False)
        connection.timeout = _left_s(ends_s)
        answer = connection.getresponse()
        left = ANSWER_BYTES_MAX
        while part := answer.read(left):
            left -= len(part)
    except TooLong:
        failure: Failure = "answer_too_long"
    except NotConnected as error:
        # Its text is the type of the error.
        is_tls = any(each in str(error) for each in ("SSL", "Certificate"))
        failure = "tls_failed" if is_tls else "not_connected"
    except (OSError, HTTPError, ValueError, HTTPException):
        failure = "connection_lost"
    else:
        return int(answer.status)
    return "timeout" if time.monotonic() >= ends_s else failure


def _left_s(ends_s: float) -> float:
    left_s = ends_s - time.monotonic()
    if left_s <= 0:
        raise TimeoutError
    return left_s


def _addresses(name: str) -> Sequence[str]:
    found = socket.getaddrinfo(name, None, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(each[4][0]) for each in found))


def _may_reach(address: Address) -> bool:
    return is_public(address) and not is_own(address)


def is_own(address: Address) -> bool:
    """Tell whether an address is this machine's: packets to it would also come from it.

    Connecting a datagram socket sends nothing.
    """
    family = socket.AF_INET if isinstance(address, IPv4Address) else socket.AF_INET6
    try:
        with socket.socket(family, socket.SOCK_DGRAM) as probe:
            probe.connect((str(address), 9))
            return ip_address(probe.getsockname()[0]) == address
    except OSError:
        return False  # There is no route to it.
