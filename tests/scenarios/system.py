"""The processes of the Procfile on one installation, and what an operator does to them."""

import os
import random
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, fields
from functools import cached_property, partial
from pathlib import Path

from app.bootstrap.container import Container
from app.settings import Settings, name_of
from tests.installation import wait_until
from tests.servers.guard import children
from tests.support import warm

ROOT = Path(__file__).parents[2]
PROCESSES = ("web", "worker", "dispatcher", "projector", "clock")
Starter = Callable[..., subprocess.Popen[bytes]]
COMES_UP_S = 120.0  # On a crowded machine, where each imports the service anew.
END_S = 30.0  # The contract: SIGTERM ends a process within this time.
KILLED = -signal.SIGKILL


def free_base() -> int:
    """Return a port after which all are free that honcho gives, and the metrics' ports of each."""
    while True:
        base = random.randrange(20_000, 28_000)
        if all(_is_free(base + step) for step in range(0, 1_700, 100)):
            return base


def _is_free(port: int) -> bool:
    with socket.socket() as probe, suppress(OSError):
        probe.bind(("127.0.0.1", port))
        return True
    return False


@dataclass(frozen=True)
class Release:
    """A checkout of this service, and an interpreter that has what it needs."""

    root: Path = ROOT
    python: str = sys.executable


class System:
    """An installation on given servers; what it started it ends."""

    def __init__(
        self,
        home: Path,
        database_url: str,
        broker_url: str,
        release: Release = Release(),
        **changes: str,
    ) -> None:
        self.home = home
        self._release = release
        self.port = free_base()
        self.url = f"http://127.0.0.1:{self.port}"
        self._started: list[Running] = []
        own = {name_of(each.name) for each in fields(Settings)} | {"HONCHO_PROCESS_NAME"}
        self.environment = {
            **{name: value for name, value in os.environ.items() if name not in own},
            "PATH": f"{Path(release.python).parent}:{os.environ.get('PATH', '')}",
            "DATABASE_URL": database_url,
            "BROKER_URL": broker_url,
            "SIGNING_KEYS": str(home / "keys"),
            "PORT": str(self.port),
            "PRICE_PER_LOOKUP": "0.005",
            "NETWORK_BASE_PLAN": "base-1",
            "SANDBOX": "true",
            "TOKEN_ALGORITHM": "ES256",
            "LOG_FORMAT": "json",
            **changes,
        }

    @cached_property
    def container(self) -> Container:
        """The parts of the installation in the process of the test."""
        return Container(Settings.from_env(self.environment))

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run an operator's command to its end."""
        if self._release == Release():
            return warm.run(arguments, self.environment)
        return subprocess.run(
            [self._release.python, "-m", "app", *arguments],
            cwd=self._release.root,
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )

    def start(self, *arguments: str, **changes: str) -> "Running":
        """Start one process of ours."""
        if self._release == Release():
            return self._start(arguments[0], partial(warm.start, arguments), changes)
        command = [self._release.python, "-m", "app", *arguments]
        return self._start(arguments[0], self._of_release(command), changes)

    def start_all(self, **changes: str) -> "dict[str, Running]":
        """Start one process of each kind of the Procfile, and wait until all of them work."""
        started = {name: self.start(name, **changes) for name in PROCESSES}
        for each in started.values():
            each.comes_up()
        return started

    def honcho(self) -> "Running":
        """Start everything from the Procfile."""
        return self._start("honcho", self._of_release(["honcho", "start", "--no-colour"]), {})

    def _of_release(self, command: Sequence[str]) -> Starter:
        return partial(subprocess.Popen, command, cwd=self._release.root)

    def _start(self, name: str, starter: Starter, changes: dict[str, str]) -> "Running":
        environment = self.environment | changes
        log = self.home / f"{name}-{len(self._started) + 1}.log"
        running = Running(name, starter, environment, log)
        self._started.append(running)
        return running

    def close(self) -> None:
        for each in self._started:
            each.close()
        if "container" in self.__dict__:
            self.container.close()


class Running:
    """A process with a process group of its own; its output goes to a file."""

    def __init__(
        self,
        name: str,
        starter: Starter,
        environment: dict[str, str],
        log: Path,
    ) -> None:
        self.name = name
        self._log = log
        with log.open("wb") as file:
            self._process = starter(
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        self.pid = self._process.pid

    def said(self) -> str:
        return self._log.read_text("utf-8", errors="replace")

    def says(self, words: str, timeout_s: float = 40.0) -> "Running":
        """Wait until its output holds these words."""
        wait_until(lambda: words in self.said() or self._process.poll() is not None, timeout_s)
        assert words in self.said(), self.said()
        return self

    def comes_up(self) -> "Running":
        """Wait until it works."""
        words = "serving" if self.name in {"web", "serve"} else "is at work"
        return self.says(words, COMES_UP_S)

    def is_running(self) -> bool:
        return self._process.poll() is None

    def signal(self, number: int) -> None:
        os.kill(self.pid, number)

    def ended(self, timeout_s: float = END_S) -> int:
        """Wait for the end; return the exit status."""
        return self._process.wait(timeout_s)

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
        self._process.wait(END_S)


def descendants(pid: int) -> Iterator[int]:
    """Return the processes that this one has started, and theirs."""
    for child in children(pid):
        yield child
        yield from descendants(child)


def failures(system: System) -> str:
    """Audit the whole log; return what is wrong, or nothing."""
    done = system.run("audit", "verify")
    return "" if done.returncode == 0 else done.stdout + done.stderr


def unfinished(system: System, patience_s: float = 60.0) -> list[str]:
    """Return links and plan changes whose work has not ended, once all of them had their time."""
    parts = system.container

    def left() -> list[str]:
        with parts.views.reading() as connection:
            return [str(row) for row in connection.execute(parts.due_list.rows.select())]

    with suppress(AssertionError):
        wait_until(lambda: not left(), patience_s)
    return left()
