"""A process of ours: from its start to its end, what it says, and what it answers."""

import json
import os
import signal
import subprocess
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, Self
from urllib.error import HTTPError
from urllib.request import urlopen

from app.watch.gauges import PREFIX
from tests.app.cli.shell import Shell
from tests.house.partner import Partner
from tests.installation import wait_until
from tests.servers.guard import children
from tests.servers.running import free_port
from tests.support import warm

Starter = Callable[..., subprocess.Popen[bytes]]
COMES_UP_S = 120.0  # On a crowded machine, where each imports the service anew.
END_S = 30.0  # The contract: SIGTERM ends a process within this time.
KILLED = -signal.SIGKILL
DEMO = ("serve", "--demo", "--json")


class Running:
    """A process with a process group of its own; its output goes to a file."""

    def __init__(
        self,
        name: str,
        starter: Starter,
        environment: Mapping[str, str],
        log: Path,
        stdout: int | None = None,
    ) -> None:
        self.name = name
        self._log = log
        with log.open("wb") as file:
            self._process = starter(
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=file if stdout is None else stdout,
                stderr=file,
                start_new_session=True,
            )
        self.pid = self._process.pid

    def said(self) -> str:
        return self._log.read_text("utf-8", errors="replace")

    def printed(self) -> Any:
        """Wait for the line of JSON that it prints when it is there."""
        line = self._process.stdout.readline()
        if not line:
            self.stop()
        assert line, self.said()
        return json.loads(line)

    def says(self, words: str, timeout_s: float = 40.0) -> Self:
        """Wait until its output holds these words."""
        wait_until(lambda: words in self.said() or not self.is_running(), timeout_s)
        assert words in self.said(), self.said()
        return self

    def comes_up(self) -> Self:
        """Wait until it works."""
        words = "serving" if self.name in {"web", "serve"} else "is at work"
        return self.says(words, COMES_UP_S)

    def is_running(self) -> bool:
        return self._process.poll() is None

    def signal(self, number: int) -> None:
        os.kill(self.pid, number)

    def ended(self, timeout_s: float = END_S) -> int:
        """Wait for the end; return the exit status. It has printed no more."""
        status, rest = self._process.wait(timeout_s), self._process.stdout
        if rest is not None and not rest.closed:
            assert rest.read() == b""
            rest.close()
        return status

    def stop(self) -> int:
        """End it as a supervisor does; return the exit status."""
        self._process.terminate()
        return self.ended()

    def kill(self) -> None:
        """Kill it."""
        self._process.kill()
        assert self.ended() == KILLED

    def close(self) -> None:
        """Kill it with everything that it has started, even if it was killed before."""
        for pid in [self.pid, *descendants(self.pid)]:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self.ended()


def descendants(pid: int) -> Iterator[int]:
    """Return the processes that this one has started, and theirs."""
    for child in children(pid):
        yield child
        yield from descendants(child)


class Served(Running):
    """A process that listens, on the installation of a shell; by default `serve` with the demo.

    `demo` holds the credentials that it has printed.
    """

    demo: Mapping[str, Any]

    def __init__(self, shell: Shell, *command: str, **settings: str) -> None:
        ports = {"PORT": str(free_port()), "METRICS_PORT": str(free_port())}
        own = ports if command else {**ports, "SANDBOX": "true"}
        command = command or DEMO
        self.shell = shell.having(**{**own, **shell.changes, **settings})
        self.port, self.metrics_port = (int(self.shell.changes[name]) for name in ports)
        self.url = f"http://127.0.0.1:{self.port}"
        environment, log = self.shell.process_environment, shell.home / f"{command[0]}.log"
        prints = subprocess.PIPE if "--json" in command else None
        super().__init__(command[0], partial(warm.start, command), environment, log, prints)
        if prints is not None:
            self.demo = self.printed()

    def get(self, path: str, port: int | None = None) -> tuple[int, str]:
        """Ask, by default at METRICS_PORT; status 0 while nobody listens."""
        url = f"http://127.0.0.1:{port or self.metrics_port}{path}"
        try:
            with urlopen(url, timeout=20) as reply:  # Our own URL.
                return int(reply.status), str(reply.read().decode())
        except HTTPError as error:
            with error:
                return error.code, error.read().decode()
        except OSError:
            return 0, ""

    def is_ready(self) -> bool:
        assert self.is_running(), self.said()
        return self.get("/readyz")[0] == 200

    def comes_up(self) -> Self:
        """Wait until it is ready."""
        wait_until(self.is_ready, COMES_UP_S)
        return self

    def partner(self) -> Partner:
        """Return the client of the demo, with a token."""
        partner = Partner(self.url, self.demo["client_id"], self.demo["client_secret"])
        wait_until(lambda: partner.authorize().status == 200, COMES_UP_S)
        return partner


def value_of(text: str, series: str) -> float | None:
    """Return the value of a series of a scrape, by its name behind our prefix."""
    found = [line for line in text.splitlines() if line.startswith(f"{PREFIX}{series} ")]
    return float(found[0].rpartition(" ")[2]) if found else None
