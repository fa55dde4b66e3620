"""A `serve` process of its own, and its clients."""

import json
from typing import Any

from tests.app.cli.shell import TIMEOUT_S, Shell
from tests.scenarios.partner import Partner
from tests.servers.running import free_port

NUMBER = "/number-lookup?phone_number=%2B14155552671"


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

    def partner(self) -> Partner:
        """Return the client of the demo, with a token."""
        partner = Partner(self.url, self.demo["client_id"], self.demo["client_secret"])
        reply = partner.authorize()
        assert reply.status == 200, reply
        return partner
