"""Behind nginx and haproxy, which keep connections to us, broken framing smuggles nothing.

A smuggled request is one that we answer and the proxy has not counted: its reply would be that of
the next client on the same connection.
"""

import logging
import socket
from collections.abc import Iterator
from contextlib import suppress

import pytest

from tests.app.http.over_http import HOST, received, serving
from tests.app.http.service import Service
from tests.app.http.test_server import ALIVE, REFUSED, TAKEN, get
from tests.servers.guard import wait_for
from tests.servers.proxies import KINDS, Proxy

pytestmark = pytest.mark.soak

HIDDEN = get(b"Host: a", first=b"GET /smuggled HTTP/1.1")
FORMS = {title: sent for title, (sent, *_) in REFUSED.items()} | TAKEN
QUIET_S = 3.0  # Longer than a proxy waits for the rest of a request.


@pytest.fixture(scope="module", params=KINDS)
def proxy(request: pytest.FixtureRequest, service: Service) -> Iterator[int]:
    with serving(service.container) as port:
        started = Proxy(KINDS[request.param], port)
        yield started.port
        started.close()


def replies(port: int, *parts: bytes) -> int:
    """Send bytes as one client; return how many replies it gets."""
    found = b""
    with socket.create_connection((HOST, port), timeout=QUIET_S) as connection:
        with suppress(BrokenPipeError, ConnectionResetError):
            for part in parts:
                connection.sendall(part)
        with suppress(ConnectionResetError, TimeoutError):
            while block := connection.recv(65_536):
                found += block
    statuses = found.count(b"HTTP/1.1 ") + found.count(b"HTTP/1.0 ")
    return statuses or bool(found)  # HTTP/0.9 has none.


def alive(port: int) -> bytes:
    return received(port, ALIVE.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n"))


def answered(caplog: pytest.LogCaptureFixture) -> list[str]:
    """Return the routes of the requests that we have answered; a refusal of bytes may come late."""
    lines = [each.__dict__ for each in caplog.records if each.name == "app.http.access"]
    return [each["route"] for each in lines if each["method"] != "-"]


@pytest.mark.parametrize("title", FORMS)
def test_nothing_is_smuggled(proxy: int, title: str, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "app.http.access")
    got = replies(proxy, FORMS[title], HIDDEN, ALIVE)
    assert len(answered(caplog)) <= got, "we have answered what the proxy has not asked"
    caplog.clear()
    for _ in range(5):  # On each kept connection, whoever comes next gets his own reply.
        found = alive(proxy)
        assert found.startswith(b"HTTP/1.1 200 OK\r\n")
        assert found.endswith(b'{"ok":true}')
    assert wait_for(lambda: len(answered(caplog)) >= 5, QUIET_S)
    assert answered(caplog) == ["/livez"] * 5
