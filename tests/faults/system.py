"""A system under test: private servers, every process of the Procfile, and who restarts the dead.

Of the workers and of each follower there are two. Processes are started by `tests.faults.process`.
"""

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from itertools import count
from pathlib import Path
from subprocess import Popen
from threading import Event, Lock, Thread

import psycopg

from app.processes.migrate import migrate
from tests.app.cli.shell import shell_of
from tests.faults.failpoints import ARMED, CLOCK, Failpoints
from tests.faults.servers import Servers
from tests.house.running import Running
from tests.house.system import ROOT, holder_of
from tests.installation import Installation, Process, wait_until
from tests.servers.running import free_port

DEADLINE_S = "10"
SUPERVISE_S = 0.2  # What an orchestrator takes to start again what has died.
ACTIVE_S_MAX = 20.0
COPIES = {"web": 1, "worker": 2, "dispatcher": 2, "projector": 2, "clock": 2}


class Member(Running):
    """One process of the Procfile, started again whenever it has died."""

    def __init__(self, role: str, copy: int, system: "System") -> None:
        self.role, self._system, self._lives = role, system, count(1)
        self._start(f"{role}-{copy}")

    def _start(self, name: str) -> None:
        command = [sys.executable, "-m", "tests.faults.process", self.role]
        log = self._system.directory / f"{name}-{next(self._lives)}.log"
        named = {"DATABASE_URL": f"{self._system.database_url}?application_name={name}"}
        environment = self._system.environment | named
        super().__init__(name, partial(Popen, command, cwd=ROOT), environment, log)

    def look(self) -> None:
        """Start it again if it has ended."""
        if not self.is_running():
            self._start(self.name)

    def kill(self) -> None:
        with suppress(ProcessLookupError):
            self.signal(signal.SIGKILL)


class System:
    """All processes of an installation on servers of its own."""

    def __init__(self, directory: Path, servers: Servers) -> None:
        self.directory = directory
        self.servers = servers
        faults = directory / "faults"
        (faults / ARMED).mkdir(parents=True)
        self.failpoints = Failpoints(faults / ARMED)
        self._clock = faults / CLOCK
        self.shift_clock(0)
        self.database_url = servers.new_database()
        self.installation = Installation(
            directory,
            DATABASE_URL=self.database_url,
            BROKER_URL=servers.broker_url,
            PORT=str(free_port()),
            TOKEN_TTL_S="86400",
            LOG_FORMAT="json",
            PROVISIONING_DEADLINE_S=DEADLINE_S,
        )
        self.environment = {
            **shell_of(self.installation).process_environment,
            "FAULTS_DIRECTORY": str(faults),
        }
        self.outside: Process = self.installation.process()
        migrate(self.outside)
        self.outside.keys.ensure()
        self.members: list[Member] = []
        self._absent: set[str] = set()
        self._stop = Event()
        self._lock = Lock()
        self._supervisor = Thread(target=self._supervise, name="supervisor")

    def reopen(self) -> None:
        """Look at the installation anew: another log has taken the place of the one that was."""
        self.outside = self.installation.process()

    def start(self) -> None:
        """Start everything and whoever watches over it."""
        self.start_members()
        if not self._supervisor.is_alive():
            self._supervisor.start()

    def start_members(self) -> None:
        with self._lock:
            self.members = [
                Member(role, copy + 1, self)
                for role, copies in COPIES.items()
                for copy in range(copies)
            ]

    def stop_members(self) -> list[int]:
        """Ask all processes to end, at once; return their exit statuses."""
        with self._lock:
            members, self.members = self.members, []
        for member in members:
            os.kill(member.pid, signal.SIGTERM)
        statuses = [member.ended() for member in members]
        for member in members:
            member.close()
        return statuses

    def of(self, role: str) -> list[Member]:
        return [member for member in self.members if member.role == role]

    def active(self, role: str) -> Member:
        """Return the copy that holds the lock of its role; waits until one does."""

        def holder() -> str | None:
            with suppress(psycopg.Error), psycopg.connect(self.database_url) as server:
                return holder_of(server, role)
            return None

        name = wait_until(holder, ACTIVE_S_MAX, f"an active {role}")
        return next(each for each in self.of(role) if each.name == name)

    @contextmanager
    def without(self, role: str) -> Iterator[None]:
        """Kill every copy of a role and start none again until the block is left."""
        self._absent.add(role)
        for member in self.of(role):
            member.kill()
        try:
            yield
        finally:
            self._absent.discard(role)

    def shift_clock(self, seconds: float) -> None:
        """Let the clock of every process be wrong by so much, from now on."""
        fresh = self._clock.with_name("fresh")
        fresh.write_text(str(seconds))
        fresh.rename(self._clock)

    def _supervise(self) -> None:
        while not self._stop.wait(SUPERVISE_S):
            with self._lock:
                for member in self.members:
                    if member.role not in self._absent:
                        member.look()

    def close(self) -> None:
        self._stop.set()
        if self._supervisor.is_alive():
            self._supervisor.join()
        for member in self.members:
            member.close()
        self.installation.close()


@contextmanager
def running_system(directory: Path, servers: Servers) -> Iterator[System]:
    system = System(directory, servers)
    try:
        system.start()
        yield system
    finally:
        system.close()
