"""A `serve` process of its own, and a client that talks to it."""

import base64
import json
import socket
import urllib.error
import urllib.request
from typing import Any

from tests.app.cli.shell import TIMEOUT_S, Shell

NUMBER = "/number-lookup?phone_number=%2B14155552671"


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


class Serving:
    """Starts when made; `demo` holds the credentials that it printed."""

    def __init__(self, home: Shell) -> None:
        port = free_port()
        self.url = f"http://127.0.0.1:{port}"
        self.shell = home.having(PORT=str(port), SANDBOX="true")
        self._log = (home.home / "serve.log").open("a+")
        self.process = self.shell.start("serve", "--demo", "--json", stderr=self._log)
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            self.stop()
        assert line, (home.home / "serve.log").read_text("utf-8")
        self.demo: dict[str, Any] = json.loads(line)

    def stop(self) -> int:
        """End it as a supervisor does; return its exit status."""
        self.process.terminate()
        out, _ = self.process.communicate(timeout=TIMEOUT_S)
        assert out == ""
        self._log.close()
        return self.process.returncode

    def call(
        self, method: str, path: str, headers: dict[str, str], body: bytes | None = None
    ) -> tuple[int, Any]:
        request = urllib.request.Request(  # noqa: S310  # Our own URL.
            self.url + path, method=method, headers=headers, data=body
        )
        try:
            with urllib.request.urlopen(request, timeout=TIMEOUT_S) as reply:  # noqa: S310  # The same URL.
                return reply.status, json.load(reply)
        except urllib.error.HTTPError as error:
            return error.code, json.load(error)

    def token(self, client: dict[str, Any]) -> tuple[int, Any]:
        """Ask for a token with what `client create` or `serve --demo` printed."""
        pair = f"{client['client_id']}:{client['client_secret']}".encode()
        headers = {"Authorization": f"Basic {base64.b64encode(pair).decode()}"}
        return self.call("POST", "/auth/token", headers, b"grant_type=client_credentials")

    def authorized(self, client: dict[str, Any]) -> dict[str, str]:
        """Return the headers of a client that may call."""
        status, token = self.token(client)
        assert status == 200, token
        return {"Authorization": f"Bearer {token['access_token']}"}
