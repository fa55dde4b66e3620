"""`python -m app serve` as a process of its own that can be killed, and operator commands."""

import json
import os
import signal
import socket
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

from tests.installation import PATIENCE_S, Installation, wait_until
from tests.support import warm

ROOT = Path(__file__).parents[2]
NUMBER_PATH = "/number-lookup?phone_number="


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def installation_for_serving(directory: Path) -> Installation:
    port = str(free_port())
    return Installation(directory, PORT=port, TOKEN_ALGORITHM="ES256", LOG_FORMAT="json")


class Service:
    """One life of the service; it ends with `kill` or `stop`, or when the `with` block is left."""

    def __init__(self, installation: Installation, module: str = "app", **changes: str) -> None:
        self._port = int(installation.environment["PORT"])
        self._lines = (installation.directory / "serve.log").open("ab")
        self._process = warm.start(
            ["serve"],
            {**child_environment(installation), **changes},
            module,
            stdout=self._lines,
            stderr=self._lines,
            start_new_session=True,
        )

    def wait_until_it_listens(self) -> None:
        wait_until(self._listens)

    def _listens(self) -> bool:
        assert self._process.poll() is None, "it ended by itself"
        with socket.socket() as tried:
            return tried.connect_ex(("127.0.0.1", self._port)) == 0

    def kill(self) -> None:
        """Kill -9 the whole session."""
        os.killpg(self._process.pid, signal.SIGKILL)
        assert self._process.wait(PATIENCE_S) == -signal.SIGKILL

    def stop(self) -> int:
        """Ask it to end; return its exit status."""
        self._process.terminate()
        return self._process.wait(PATIENCE_S)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._process.poll() is None:
            self.kill()
        self._lines.close()


def child_environment(installation: Installation) -> Mapping[str, str]:
    """The settings, and nothing of this process but where programs are found."""
    return {**installation.environment, "PATH": os.environ.get("PATH", "")}


def run(installation: Installation, *arguments: str) -> tuple[int, Any]:
    """Run one operator command; return its exit status and what it printed."""
    done = warm.run([*arguments, "--json"], child_environment(installation))
    return done.returncode, json.loads(done.stdout or "null")
