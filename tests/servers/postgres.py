"""A private PostgreSQL server: it is fast because it may lose everything."""

import os
import shutil
import signal
from collections.abc import Iterable, Mapping
from fcntl import LOCK_EX, flock
from pathlib import Path

from tests.servers.guard import children, send, wait_for
from tests.servers.running import CannotStart, Home, Server, free_port, newest

PROGRAM = "usr/lib/postgresql/*/bin/postgres"
START_S = 30.0
TEST_RUN = "PYTEST_XDIST_TESTRUNUID"  # The same in all processes of a run.
SETTINGS = {
    "listen_addresses": "127.0.0.1",
    "unix_socket_directories": "",
    "max_connections": "300",
    "fsync": "off",
    "full_page_writes": "off",
    "wal_level": "minimal",
    "max_wal_senders": "0",
    "autovacuum": "off",
    "checkpoint_timeout": "1h",
    "max_wal_size": "4GB",
}


# What a server needs that another one follows, and that one itself.
REPLICATED = {"wal_level": "replica", "max_wal_senders": "4", "hot_standby": "on"}


class PostgresServer(Server):
    """A server with a port of its own; the port stays the same when it is started again."""

    def __init__(
        self,
        settings: Mapping[str, str] | None = None,
        standby_of: "PostgresServer | None" = None,
    ) -> None:
        self._settings = {**SETTINGS, **(settings or {})}
        self._programs = newest(PROGRAM).parent
        self.port = free_port()
        # SIGQUIT ends it at once and lets go of the shared memory, which SIGKILL would leave.
        home = Home("postgres", ["SIGQUIT=data/postmaster.pid"])
        super().__init__(home, "data/postmaster.pid")
        self._data = self._home.path / "data"
        try:
            if standby_of is None:
                self._make()
                self.start()
            else:
                self.follow(standby_of)
        except BaseException:
            self.close()
            raise

    def _make(self) -> None:
        """Copy what `initdb` has made for a server of these tests, or have it made, by one alone.

        It takes a second and a half of a processor; it goes with the server it was made for.
        """
        homes, made = self._home.path.parent, f"made-{os.environ.get(TEST_RUN, os.getpid())}"
        alone = os.open(homes, os.O_RDONLY)
        try:
            flock(alone, LOCK_EX)
            if not self._copy(homes.glob(f"postgres-*/{made}")):
                making = self._home.path / "making"
                options = ["--username=postgres", "--auth=trust", "--no-sync", "--encoding=UTF8"]
                self._call("initdb", "-D", making, "--no-instructions", *options)
                if not self._copy([making.rename(making.with_name(made))]):
                    raise CannotStart(self._home.last_words())
        finally:
            os.close(alone)

    def _copy(self, clusters: Iterable[Path]) -> bool:
        return any(self._home.run(["cp", "-aT", each, self._data], {}) == 0 for each in clusters)

    def follow(self, primary: "PostgresServer") -> None:
        """Become a standby of another server, whatever it was before; nobody may use it now."""
        shutil.rmtree(self._data, ignore_errors=True)
        there = ["-h", "127.0.0.1", "-p", str(primary.port), "-U", "postgres"]
        self._call(
            "pg_basebackup", *there, "-D", self._data, "-R", "-X", "stream", "-c", "fast", "-N"
        )
        self.start()

    def promote(self) -> None:
        """Take writes from now on."""
        self._call("pg_ctl", "promote", "-w", "-D", self._data)

    def url(self, database: str = "postgres") -> str:
        return f"postgresql://postgres@127.0.0.1:{self.port}/{database}"

    def start(self) -> None:
        """Start, again and again until the children of a killed server have let go."""
        settings = {**self._settings, "port": str(self.port)}
        told = " ".join(f"-c {name}='{value}'" for name, value in settings.items())
        command = ["start", "-w", "-D", self._data, "-l", self._server_log, "-o", told]
        if not wait_for(lambda: self._run("pg_ctl", *command) == 0, START_S):
            raise CannotStart(self._home.last_words(self._server_log))

    def stop(self) -> None:
        """End connections and stop in good order."""
        if self.is_running():
            self._call("pg_ctl", "stop", "-w", "-m", "fast", "-D", self._data)

    def kill(self) -> None:
        """Kill the server and all its children with `kill -9`, as in a power cut.

        A child whose parent alone was killed may still answer what it was asked.
        """
        pid = self.pid
        os.kill(pid, signal.SIGSTOP)  # From now on it gets no more children.
        for each in (pid, *children(pid)):
            send(each, signal.SIGKILL)

    @property
    def _server_log(self) -> Path:
        return self._home.path / "server.log"

    def _run(self, name: str, *arguments: str | Path) -> int:
        return self._home.run([self._programs / name, *arguments], {})

    def _call(self, name: str, *arguments: str | Path) -> None:
        if self._run(name, *arguments) != 0:
            raise CannotStart(self._home.last_words(self._server_log))
