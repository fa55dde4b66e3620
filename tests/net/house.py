"""An installation that serves, the clock by which it lives, and the commands that operate it."""

import io
import json
import os
import signal
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from functools import partial
from http import HTTPStatus
from http.client import HTTPConnection
from pathlib import Path
from typing import Any
from unittest.mock import patch
from urllib.parse import urlsplit

import psycopg
import pytest
import time_machine
from click.testing import CliRunner

from app.cli.root import PROGRAM, cli
from app.processes import migrate
from app.processes.migrate import is_migrated
from tests.house.running import DEMO, Running
from tests.installation import Parts, wait_until
from tests.seeds import Seed
from tests.servers.running import free_port
from tests.support import warm

BEGINS = datetime(2026, 3, 10, 10, 0, tzinfo=UTC)  # A Tuesday, far from the ends of its month.
PATIENCE_S = 30.0
SETTINGS = {
    "SANDBOX": "true",
    "TOKEN_ALGORITHM": "ES256",  # A key of it is made in no time.
    "PUBLIC_URL": "https://api.example",
    "NETWORK_BASE_PLAN": "base-1",
    "LINK_CANCEL_DAYS": "14",
    "WEBHOOKS_ALLOW_PRIVATE": "true",
    "READINGS_REFRESH_S": "0",  # Readings in the background come when they come.
    "REQUEST_READ_S": "2",
}
# PostgreSQL tells its own time, and the service believes it. A function of this name that is found
# before the server's moves it for one database.
SERVER_CLOCK = """
    CREATE SCHEMA net;
    CREATE TABLE net.ahead (seconds double precision);
    INSERT INTO net.ahead VALUES (0);
    CREATE FUNCTION net.clock_timestamp() RETURNS timestamptz VOLATILE LANGUAGE sql AS $$
        SELECT pg_catalog.clock_timestamp() + make_interval(secs => seconds) FROM net.ahead $$;
    GRANT USAGE ON SCHEMA net TO PUBLIC;
    GRANT SELECT ON net.ahead TO PUBLIC;
"""


class Clock:
    """The time of the service and of its commands; it goes on, and a story may move it."""

    def __init__(self, file: Path, database: str, now: datetime) -> None:
        self.file = file
        self._database = database if database.startswith("postgresql:") else ""
        if self._database:
            with psycopg.connect(database, autocommit=True) as server:
                server.execute(SERVER_CLOCK)
                name = server.info.dbname
                server.execute(f'ALTER DATABASE "{name}" SET search_path = public, net, pg_catalog')
        self.set(now)

    @property
    def now(self) -> datetime:
        return datetime.now(UTC) + self._ahead

    def set(self, now: datetime) -> None:
        """Let it be this moment, for commands and for whoever starts from now on."""
        self._ahead = now - datetime.now(UTC)
        self.file.write_text(str(self._ahead.total_seconds()))
        if self._database:
            with psycopg.connect(self._database, autocommit=True) as server:
                ahead_s = self._ahead.total_seconds()
                server.execute("UPDATE net.ahead SET seconds = %s", (ahead_s,))


class House:
    """An installation: `serve` in a process of its own once it is started, and its commands."""

    def __init__(self, home: Path, database: str, now: datetime = BEGINS, **settings: str) -> None:
        self.home = home
        self.database = database
        self.clock = Clock(home / "clock", database, now)
        self.port = free_port()
        self.environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(home),
            "DATABASE_URL": database,
            "SIGNING_KEYS": str(home / "keys"),
            "PORT": str(self.port),
            **SETTINGS,
            **settings,
        }
        self.printed: dict[str, Any] = {}
        self._migrated = set[str]()  # Databases; to look at the tables takes half of a command.
        self._process: Running | None = None

    def start(self, *arguments: str) -> "House":
        """Serve, by default with the demo's organization and plans, and wait until it answers.

        With --json a command prints one line when it is there: `printed`.
        """
        words = arguments or DEMO
        environment = {**self.environment, "NET_CLOCK": str(self.clock.file)}
        starter = partial(warm.start, words, module="tests.net.serve")
        prints = subprocess.PIPE if "--json" in words else None
        self._process = Running(words[0], starter, environment, self.home / "serve.log", prints)
        if prints is not None:
            self.printed = self._process.printed()
        wait_until(self._answers, PATIENCE_S, "the service")
        return self

    def stop(self) -> None:
        """End it as a supervisor does; whatever was going on, it ends well."""
        if self._process is not None:
            process, self._process = self._process, None
            assert process.stop() == 0, process.said()

    def move(self, now: datetime) -> None:
        """Let it be another time, in the service too."""
        self.clock.set(now)
        if self._process is not None:
            self._process.signal(signal.SIGUSR1)
            wait_until(lambda: abs(self._told_now() - self.clock.now) < timedelta(seconds=30))
            wait_until(
                self._is_ready, PATIENCE_S
            )  # It has compared its clock with the database's, too.

    def command(
        self, *arguments: object, answers: str | None = None, **settings: str
    ) -> tuple[int, str, str]:
        """Run `python -m app …` in this process: exit status, standard output and error."""
        words = [*map(str, arguments)]
        moved = time_machine.travel(self.clock.now)
        surroundings = patch.dict(os.environ, {**self.environment, **settings}, clear=True)
        trust = patch.object(migrate, "is_migrated", self._has_tables)
        with surroundings, moved, trust:
            done = CliRunner().invoke(cli, words, answers, prog_name=PROGRAM)
        if done.exception is not None and not isinstance(done.exception, SystemExit):
            raise done.exception
        return done.exit_code, done.stdout_bytes.decode(), done.stderr

    def lose_database(self) -> None:
        """Take the database away from the service, for good."""
        if self.database.startswith("sqlite:"):
            for file in self.home.glob("service*.db*"):
                file.unlink()
            return
        name = urlsplit(self.database).path[1:]
        with psycopg.connect(self.database, dbname="postgres", autocommit=True) as server:
            server.execute(f'ALTER DATABASE "{name}" ALLOW_CONNECTIONS false')
            ends = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s"
            server.execute(ends, (name,))

    def connect(self) -> HTTPConnection:
        return HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE_S)

    def send(self, sent: bytes, *, half: bool = False) -> bytes:
        """Send bytes that no client would; read until the service closes, `half`: by itself."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=PATIENCE_S) as connection:
            connection.sendall(sent)
            if not half:
                connection.shutdown(socket.SHUT_WR)
            received = io.BytesIO()
            while block := connection.recv(65_536):
                received.write(block)
        return received.getvalue()

    def _answers(self) -> bool:
        try:
            self._ask("/livez")
        except OSError:
            return False
        return True

    def _is_ready(self) -> bool:
        return self._ask("/readyz")[0] == HTTPStatus.OK

    def _told_now(self) -> datetime:
        """Ask the service for its time."""
        told = json.loads(self._ask("/number-lookup/health")[1])
        return datetime.fromisoformat(told["timestamp"])

    def _ask(self, path: str) -> tuple[int, bytes]:
        connection = self.connect()
        connection.request("GET", path)
        reply = connection.getresponse()
        status, body = reply.status, reply.read()
        connection.close()
        return status, body

    def _has_tables(self, container: Parts) -> bool:
        url = container.settings.database_url
        if url not in self._migrated and is_migrated(container):
            self._migrated.add(url)
        return url in self._migrated and container.persistence.has_all_files()


def shared_house(name: str, **settings: str) -> Any:
    """Return the fixture of a file whose scenarios share a house of other settings."""

    @pytest.fixture(scope="module", name="house")
    def made(tmp_path_factory: pytest.TempPathFactory, migrated: Seed) -> Iterator[House]:
        with house(tmp_path_factory.mktemp(name), migrated, **settings) as made:
            yield made.start()

    return made


@contextmanager
def house(home: Path, seed: Seed, **options: Any) -> Iterator[House]:
    """Lend a house on a copy of a seed of tables, and take both down afterwards."""
    home.mkdir(parents=True, exist_ok=True)
    database = seed.copy(home)
    made = House(home, database, **options)
    try:
        yield made
    finally:
        made.stop()
        seed.drop(database)
