"""The processes of the Procfile on one installation, and what an operator does to them."""

import json
import os
import random
import socket
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, fields
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import psycopg

from app.adapters.postgres.lock import key_of
from app.settings import Settings, name_of
from projections.models.due import Due
from tests.house.running import Running, Starter
from tests.installation import Parts, wait_until
from tests.support import warm

ROOT = Path(__file__).parents[2]
HOLDERS = """
    SELECT a.application_name FROM pg_locks l JOIN pg_stat_activity a USING (pid)
    WHERE l.locktype = 'advisory' AND l.granted AND a.datname = current_database()
    AND (l.classid::bigint << 32 | l.objid::bigint) = %s
"""
PROCESSES = ("web", "worker", "dispatcher", "projector", "clock")


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


def holder_of(server: psycopg.Connection, role: str) -> str | None:
    """Name the copy of a role that holds its lock, by the `application_name` of its connections."""
    row = server.execute(HOLDERS, [key_of(role)]).fetchone()
    return None if row is None else str(row[0])


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
    def container(self) -> Parts:
        """The parts of the installation in the process of the test."""
        return Parts(Settings.from_env(self.environment))

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

    def command(self, *arguments: str) -> str:
        """Run an operator's command that must succeed; return what it has printed."""
        done = self.run(*arguments)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def json(self, *arguments: str) -> Any:
        return json.loads(self.command(*arguments, "--json"))

    def check(self, patience_s: float = 60.0) -> None:
        """Fail unless all work has ended, once it had its time, and the whole log is right."""
        parts = self.container

        def left() -> list[Due]:
            return parts.read(parts.due_list.all)

        with suppress(AssertionError):
            wait_until(lambda: not left(), patience_s)
        assert left() == []
        self.command("audit", "verify")

    def start(self, *arguments: str, **changes: str) -> Running:
        """Start one process of ours."""
        if self._release == Release():
            return self._start(arguments[0], partial(warm.start, arguments), changes)
        command = [self._release.python, "-m", "app", *arguments]
        return self._start(arguments[0], self._of_release(command), changes)

    def start_all(self, **changes: str) -> dict[str, Running]:
        """Start one process of each kind of the Procfile, and wait until all of them work."""
        started = {name: self.start(name, **changes) for name in PROCESSES}
        for each in started.values():
            each.comes_up()
        return started

    def honcho(self) -> Running:
        """Start everything from the Procfile."""
        return self._start("honcho", self._of_release(["honcho", "start", "--no-colour"]), {})

    def _of_release(self, command: Sequence[str]) -> Starter:
        return partial(subprocess.Popen, command, cwd=self._release.root)

    def _start(self, name: str, starter: Starter, changes: dict[str, str]) -> Running:
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
