"""Where a webhook may lead: which URLs can be registered, and which addresses we connect to.

A partner's URL must not make this service call hosts in its own network. An IP address in a URL is
checked here; a name is checked at each connection, when it has been resolved.
"""

import re
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address
from typing import NamedTuple
from urllib.parse import SplitResult, urlsplit

URL_CHARS_MAX = 2048
HTTPS_PORT, HTTP_PORT = 443, 80

NOT_A_URL = "Must be an absolute URL of at most 2048 characters, escaped to plain ASCII."
NOT_HTTPS = "Must begin with https://."
WITH_USER = "Must hold no user and no password."
WITH_FRAGMENT = "Must have no fragment (#)."
NOT_A_HOST = (
    "Must name a host; a name has dots, is in ASCII (xn--…) and is resolved on the internet."
)
NOT_AN_ADDRESS = "An IPv4 address must be four decimal numbers, without leading zeros."
OTHER_PORT = "Must use port 443."
NOT_PUBLIC = "Must lead to a public address."

_TEXT = re.compile(r"[A-Za-z0-9._~:/?#\[\]@!$&'()*+,;=%-]+")
_NAME = re.compile(r"(?=.{1,253}\Z)([a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?\.)*[a-z0-9_-]{1,63}")
_NUMBER = re.compile(r"[0-9]+|0x[0-9a-f]*")  # A host with such a last label is an IPv4 address.

# The ranges of the IANA special-purpose registry that hold no hosts of the internet.
_NOT_PUBLIC = [
    IPv4Network(each)
    for each in (
        "0.0.0.0/8",
        "10.0.0.0/8",
        "100.64.0.0/10",  # Behind the NAT of a carrier; metadata at Alibaba.
        "127.0.0.0/8",
        "168.63.129.16/32",  # The host of a machine at Azure: metadata, from within only.
        "169.254.0.0/16",  # Link-local: metadata at 169.254.169.254.
        "172.16.0.0/12",
        "192.0.0.0/24",
        "192.0.2.0/24",
        "192.88.99.0/24",
        "192.168.0.0/16",
        "198.18.0.0/15",
        "198.51.100.0/24",
        "203.0.113.0/24",
        "224.0.0.0/3",  # Multicast, reserved, broadcast.
    )
]
# IPv6 outside of this range is refused: loopback, link-local, ULA (metadata at fd00:ec2::254),
# multicast, and addresses that contain an IPv4 address (::/96, ::ffff:0:0/96, NAT64).
_GLOBAL = IPv6Network("2000::/3")
_NOT_GLOBAL = [
    IPv6Network(each)
    for each in ("2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20")  # With Teredo and 6to4.
]


class NotAllowed(Exception):
    """Raised for a URL that no webhook may have; its text says why without quoting the URL."""


class Destination(NamedTuple):
    """Where to connect; `path` includes the query, `address` is set if the host is an address."""

    scheme: str
    host: str
    port: int
    path: str
    address: IPv4Address | IPv6Address | None


def is_public(address: IPv4Address | IPv6Address) -> bool:
    if isinstance(address, IPv4Address):
        return not any(address in each for each in _NOT_PUBLIC)
    return address in _GLOBAL and not any(address in each for each in _NOT_GLOBAL)


def read_destination(url: str, *, allow_private: bool) -> Destination:
    """Return where a URL leads; raises NotAllowed.

    `allow_private` also allows http, any port, private addresses and names without a dot.
    """
    if len(url) > URL_CHARS_MAX or not _TEXT.fullmatch(url):
        raise NotAllowed(NOT_A_URL)
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        raise NotAllowed(NOT_A_URL) from None
    if parts.scheme not in ({"https", "http"} if allow_private else {"https"}):
        raise NotAllowed(NOT_HTTPS)
    if "@" in parts.netloc:
        raise NotAllowed(WITH_USER)
    if "#" in url:
        raise NotAllowed(WITH_FRAGMENT)
    usual = HTTPS_PORT if parts.scheme == "https" else HTTP_PORT
    port = usual if port is None else port
    if not port or (port != HTTPS_PORT and not allow_private):
        raise NotAllowed(OTHER_PORT)
    host, address = _host(parts, allow_private=allow_private)
    if address is not None and not allow_private and not is_public(address):
        raise NotAllowed(NOT_PUBLIC)
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    return Destination(parts.scheme, host, port, path, address)


def _host(
    parts: SplitResult, *, allow_private: bool
) -> tuple[str, IPv4Address | IPv6Address | None]:
    """Return the host without a dot at its end, and its address if it is written as one."""
    host = (parts.hostname or "").removesuffix(".")
    try:
        address = None if "%" in host else ip_address(host)
    except ValueError:
        address = None
    if address is not None:
        return str(address), address
    if "[" in parts.netloc or not _NAME.fullmatch(host):
        raise NotAllowed(NOT_A_HOST)
    *above, last = host.split(".")
    if _NUMBER.fullmatch(last):
        raise NotAllowed(NOT_AN_ADDRESS)
    if not above and not allow_private:
        raise NotAllowed(NOT_A_HOST)
    return host, None
