"""The sockets on which HTTP is accepted; a port that is not available is a wrong setting."""

import socket

from app.settings import WrongSetting

BACKLOG = 1024


def bind(host: str, port: int, *, shared: bool = False) -> list[socket.socket]:
    """Return sockets for every address of a host; they do not listen yet.

    Of processes that all bind a port as `shared`, the kernel gives each connection to one.
    """
    opened: list[socket.socket] = []
    try:
        found = socket.getaddrinfo(
            host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )
        addresses = list(dict.fromkeys((family, address) for family, *_, address in found))
        for family, address in addresses:
            opened.append(_bound(family, address, alone=len(addresses) == 1, shared=shared))
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


def _bound(family: int, address: tuple[object, ...], *, alone: bool, shared: bool) -> socket.socket:
    made = socket.socket(family)
    try:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, shared)
        if family == socket.AF_INET6 and not alone:
            made.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        made.bind(address)
    except BaseException:
        made.close()
        raise
    made.settimeout(0)
    return made


def _wrong(host: str, port: int, error: Exception) -> WrongSetting:
    reason = error.strerror if isinstance(error, OSError) else "no such address"
    return WrongSetting(f"cannot listen on HOST {host} PORT {port}: {reason}")
