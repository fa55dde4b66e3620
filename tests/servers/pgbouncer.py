"""A private pooler before a PostgreSQL server, in any of its modes."""

import signal
from urllib.parse import unquote, urlsplit, urlunsplit

import psycopg

from tests.servers.guard import pid_in, send, wait_for
from tests.servers.running import CannotStart, Home, free_port, newest

PROGRAM = "usr/sbin/pgbouncer"
START_S = 10.0
SETTINGS = """
[databases]
* = host={host} port={server_port}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {port}
unix_socket_dir =
auth_type = trust
auth_file = {home}/users
pool_mode = {mode}
default_pool_size = {size}
logfile = {home}/log
pidfile = {home}/pid
"""


class PgBouncer:
    """A pooler with a port of its own; it trusts everybody, and knows the password of a URL."""

    def __init__(self, url: str, mode: str, size: int) -> None:
        self._program = newest(PROGRAM)
        parts = urlsplit(url)
        self.port = free_port()
        user = parts.netloc.rpartition("@")[0]
        self.url = urlunsplit(parts._replace(netloc=f"{user}@127.0.0.1:{self.port}"))
        self._home = Home("postgres", ["SIGTERM=pid"])  # The user that Debian runs it as.
        self.close = self._home.close  # It stops the server, and removes all files.
        self._facts = {
            "home": self._home.path,
            "port": self.port,
            "host": parts.hostname,
            "server_port": parts.port or 5432,
            "size": size,
        }
        users = f'"{unquote(parts.username or "")}" "{unquote(parts.password or "")}"\n'
        (self._home.path / "users").write_text(users)
        try:
            self.start(mode)
        except BaseException:
            self.close()
            raise

    def start(self, mode: str) -> None:
        """Start in a mode; one that runs is ended before, with all connections through it."""
        pid = pid_in(self._home.path / "pid")
        if pid is not None:
            assert send(pid, signal.SIGTERM)
        settings = self._home.path / "settings"
        settings.write_text(SETTINGS.format(mode=mode, **self._facts))
        self._home.run([self._program, "-d", settings], {})
        if not wait_for(self._is_up, START_S):
            raise CannotStart(self._home.last_words(self._home.path / "log"))

    def _is_up(self) -> bool:
        try:
            psycopg.connect(self.url, connect_timeout=2).close()
        except psycopg.OperationalError:
            return False
        return True
