"""A `web` process on SQLite, and a client that sends it bytes."""

import json
import signal
import socket
from pathlib import Path
from typing import Any

from app.bootstrap.container import Container
from tests.app.cli.serving import free_port
from tests.app.cli.shell import Shell
from tests.installation import wait_until
from tests.plan_files import make_demo
from tests.scenarios.partner import Partner

COMES_UP_S = 40.0
END_S = 30.0


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


class Web:
    """A `web` process on SQLite behind one trusted proxy; no broker is there."""

    def __init__(self, home: Path, **more: str) -> None:
        self.port = free_port()
        self.shell = Shell(home).having(
            PORT=str(self.port),
            BROKER_URL=f"amqp://127.0.0.1:{free_port()}",
            TRUSTED_PROXIES="1",
            WEB_WORKERS="1",
            PRICE_PER_LOOKUP="0.005",
        )
        self.shell = self.shell.having(**more)
        self.shell.run("migrate")
        self._log = (home / "web.log").open("wb")
        self.process = self.shell.start("web", stdout=self._log, stderr=self._log)
        self.partner = Partner(f"http://127.0.0.1:{self.port}", *demo(self.shell.container()))
        wait_until(lambda: self.partner.authorize().status == 200, COMES_UP_S)

    def log(self) -> str:
        """Return what it has said."""
        return (self.shell.home / "web.log").read_text("utf-8")

    def stop(self) -> int:
        self.process.send_signal(signal.SIGTERM)
        status = self.process.wait(END_S)
        self._log.close()
        return status

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()
        self._log.close()

    def send(self, *parts: bytes) -> Answer:
        """Send bytes and read until the server closes."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=20) as connection:
            try:
                for part in parts:
                    connection.sendall(part)
            except (BrokenPipeError, ConnectionResetError):
                pass  # The server has answered and closed before all was sent.
            received = b""
            while block := connection.recv(65_536):
                received += block
        return Answer(received)

    def request(self, line: str, *body: bytes, **headers: str) -> Answer:
        """Send a request with the token of the partner."""
        own = {"Host": "api.example", "Connection": "close"} | self.partner.headers()
        fields = own | {name.replace("_", "-"): value for name, value in headers.items()}
        lines = [f"{line} HTTP/1.1", *(f"{name}: {value}" for name, value in fields.items())]
        return self.send("\r\n".join([*lines, "", ""]).encode(), *body)


def demo(container: Container) -> tuple[str, str]:
    """Make an organization with money and plans; return its credentials."""
    made = make_demo(container)
    container.projector.catch_up()
    container.close()
    return made.client_id, made.client_secret
