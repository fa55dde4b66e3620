"""An application behind its server over a real socket, and a client that sends it bytes."""

import json
import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from http.client import HTTPConnection
from threading import Thread
from typing import Any

import pytest
from werkzeug.datastructures import Headers
from werkzeug.wrappers import Request

from app.bootstrap.container import Container
from app.http.application import Bridge
from app.http.server.listening import Server, bind, listen
from tests.app.http.service import DescribedClient, Service, Tenant

HOST = "127.0.0.1"
JOIN_S = 45.0


def listeners() -> list[socket.socket]:
    """Return what listens on a free port."""
    opened = bind(HOST, 0)
    listen(opened, HOST, 0)
    return opened


@contextmanager
def running(server: Server) -> Iterator[int]:
    """Serve in a thread; lends the port."""
    thread = Thread(target=server.run)
    thread.start()
    try:
        yield int(server.addresses[0][1])
    finally:
        server.should_exit = True
        thread.join(JOIN_S)
        assert not thread.is_alive()


@contextmanager
def serving(container: Container, *, many: bool = False, finish_s: float = 10.0) -> Iterator[int]:
    """Serve the application of a container; lends the port."""
    bridge = Bridge(many=many)
    bridge.use(container)
    with running(Server(listeners(), lambda: bridge.loop, container.settings, finish_s)) as port:
        yield port


class Behind:
    """A service behind a server of its own, until it is closed."""

    def __init__(self, service: Service, *, many: bool = True) -> None:
        self.service, self.stack = service, ExitStack()
        self.bridge = Bridge(many=many)
        self.bridge.use(service.container)
        self.server = Server(listeners(), lambda: self.bridge.loop, service.container.settings, 10)
        self.port = self.stack.enter_context(running(self.server))

    def leave_to_threads(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Let the loop answer nothing by itself."""
        monkeypatch.setattr(self.bridge.loop, "start", lambda *_: None)

    def close(self) -> None:
        self.stack.close()


class OverHttp(DescribedClient):
    """A client of an application that asks the server before it."""

    port: int

    def run_wsgi_app(self, environ: Any, *_: object, **__: object) -> Any:
        sent, connection = Request(environ), HTTPConnection(HOST, self.port, timeout=20)
        path, body = environ["REQUEST_URI"], sent.get_data()
        connection.request(sent.method, path, body or None, dict(sent.headers))
        reply = connection.getresponse()
        body = reply.read()
        connection.close()
        return [body], f"{reply.status} {reply.reason}", Headers(reply.getheaders())


class Answer:
    """A parsed reply; its header names are in lower case."""

    def __init__(self, received: bytes) -> None:
        head, _, self.body = received.partition(b"\r\n\r\n")
        status, *lines = head.decode("latin-1").split("\r\n")
        self.status = int(status.split()[1])
        pairs = (line.split(": ", 1) for line in lines)
        self.headers = {name.lower(): value for name, value in pairs}

    def json(self) -> dict[str, Any]:
        assert self.headers["content-type"] == "application/json"
        found: dict[str, Any] = json.loads(self.body)
        return found

    def code(self) -> str:
        return str(self.json()["error"]["code"])


def received(port: int, *parts: bytes) -> bytes:
    """Send bytes, and return all that comes until the server closes."""
    with socket.create_connection((HOST, port), timeout=20) as connection:
        try:
            for part in parts:
                connection.sendall(part)
        except (BrokenPipeError, ConnectionResetError):
            pass  # The server has answered and closed before all was sent.
        return read_all(connection)


def read_all(connection: socket.socket) -> bytes:
    """Return all that comes until the other side closes."""
    found = b""
    while block := connection.recv(65_536):
        found += block
    return found


def send(port: int, *parts: bytes) -> Answer:
    return Answer(received(port, *parts))


def request(line: str, tenant: Tenant | None = None, **headers: str) -> bytes:
    """Return the head of a request after which the connection closes."""
    own = {"Host": "api.example", "Connection": "close"}
    if tenant is not None:
        own |= tenant.headers
    fields = {**own, **{name.replace("_", "-"): value for name, value in headers.items()}}
    lines = [line, *(f"{name}: {value}" for name, value in fields.items()), "", ""]
    return "\r\n".join(lines).encode("latin-1")
