"""Sends a webhook to its URL, over a connection of its own to a checked address.

A partner chooses the URL, so it is not trusted: the name is resolved once, all its addresses are
checked, and the connection goes to one of them. One time limit covers everything, redirects are not
followed, proxies of the environment are not used. No error shows any part of the URL.
"""

import socket
import ssl
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from functools import cached_property
from http.client import HTTPException
from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import Final, Literal

from app.adapters.remote.exchange import Origin, Request
from app.adapters.remote.names import Names, Resolve
from domain.webhooks.deliveries import Sent
from domain.webhooks.destination import Destination, NotAllowed, is_public, read_destination

SEND_S = 10.0  # For resolving, connecting, TLS, sending, and the whole answer together.
HEADERS: Final = {
    "Content-Type": "application/json",
    "User-Agent": "carrier-links",
    "Connection": "close",
}

Address = IPv4Address | IPv6Address
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


@dataclass(eq=False)
class HttpSender:
    """Sends webhooks; thread-safe. `allow_private` is for development: see `read_destination`."""

    _: KW_ONLY
    allow_private: bool
    resolve: Resolve = field(default_factory=Names)  # Of its own: partners choose these names.
    may_reach: Callable[[Address], bool] = lambda it: is_public(it) and not is_own(it)
    context: ssl.SSLContext | None = None
    send_s: float = SEND_S
    on_outcome: Callable[[str], None] = lambda _: None

    def send(self, url: str, headers: Mapping[str, str], body: bytes) -> Sent:
        """POST a body once; a failure is returned, not raised."""
        started_s = time.monotonic()
        found = self._send(url, headers, body, started_s + self.send_s)
        duration_ms = round((time.monotonic() - started_s) * 1000)
        self.on_outcome(f"{found // 100}xx" if isinstance(found, int) else found)
        if isinstance(found, int):
            return Sent(found, None, duration_ms)
        return Sent(None, found, duration_ms)

    @cached_property
    def _context(self) -> ssl.SSLContext:
        """Made once: loading the certificates of all authorities takes longer than a handshake."""
        return self.context or ssl.create_default_context()

    def _send(
        self, url: str, headers: Mapping[str, str], body: bytes, ends_s: float
    ) -> int | Failure:
        try:
            destination = read_destination(url, allow_private=self.allow_private)
        except NotAllowed:
            return "url_not_allowed"
        addresses = self._addresses(destination, ends_s)
        if not addresses:
            return "name_not_resolved" if time.monotonic() < ends_s else "timeout"
        if not self.allow_private and not all(map(self._is_allowed, addresses)):
            return "address_not_allowed"
        context = self._context if destination.scheme == "https" else None
        request = Request("POST", destination.path, body, {**HEADERS, **headers})
        origin = Origin(destination.scheme, destination.host, destination.port)
        return _exchange(origin, request, ends_s, context, addresses)

    def _addresses(self, destination: Destination, ends_s: float) -> Sequence[str] | None:
        if destination.address is not None:
            return [str(destination.address)]
        # The last dot keeps the resolver from trying the name within our own domains.
        name = destination.host if self.allow_private else f"{destination.host}."
        return self.resolve(name, ends_s)

    def _is_allowed(self, text: str) -> bool:
        try:
            return self.may_reach(ip_address(text))
        except ValueError:
            return False


def _exchange(
    origin: Origin,
    request: Request,
    ends_s: float,
    context: ssl.SSLContext | None,
    addresses: Sequence[str],
) -> int | Failure:
    """Send as `exchange` does; return the status of the answer, or why there is none."""
    # Loaded late, so that a process that sends nothing does not load the HTTP client.
    from urllib3.exceptions import HTTPError  # noqa: PLC0415  # As above.

    from app.adapters.remote.connection import (  # noqa: PLC0415  # As above.
        NotConnected,
        TooLong,
        exchange,
    )

    try:
        return exchange(origin, request, ends_s, context, addresses)
    except TooLong:
        failure: Failure = "answer_too_long"
    except NotConnected as error:
        # Its text is the type of the error.
        is_tls = any(each in str(error) for each in ("SSL", "Certificate"))
        failure = "tls_failed" if is_tls else "not_connected"
    except (OSError, HTTPError, ValueError, HTTPException):
        failure = "connection_lost"
    return "timeout" if time.monotonic() >= ends_s else failure


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
