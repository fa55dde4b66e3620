"""A PostgreSQL server with a standby, one of which takes writes at a time."""

from typing import Self

import psycopg
from psycopg.sql import SQL, Literal

from tests.installation import wait_until
from tests.servers.postgres import REPLICATED, PostgresServer

CAUGHT_UP = "SELECT bool_and(replay_lsn = pg_current_wal_lsn()) FROM pg_stat_replication"


class Pair:
    """Two servers of their own; after each failover the other one is the primary."""

    def __init__(self, **settings: str) -> None:
        self._settings = {**REPLICATED, **settings}
        self.primary = PostgresServer(self._settings)
        try:
            self.standby = PostgresServer(self._settings, standby_of=self.primary)
        except BaseException:
            self.primary.close()
            raise
        places = ",".join(f"127.0.0.1:{each.port}" for each in (self.primary, self.standby))
        self.url = f"postgresql://postgres@{places}/postgres"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.primary.close()
        self.standby.close()

    def keep_up(self) -> None:
        """Wait until the standby has all that the primary has."""
        with psycopg.connect(self.primary.url(), autocommit=True) as connection:
            wait_until(lambda: connection.execute(CAUGHT_UP).fetchone() == (True,))

    def wait_for_standby(self, name: str) -> None:
        """Let commits of the primary wait for a standby of this name; "" for none.

        A reload reaches each process of the server later. The main process tells all others before
        it takes a connection that has the new value, and a checkpoint that is asked for then is
        not made before the checkpointer, which turns the waiting on and off, has heard it. That
        may have been about to make one that somebody else had asked for; hence two.
        """
        with psycopg.connect(self.primary.url(), autocommit=True) as connection:
            connection.execute(
                SQL("ALTER SYSTEM SET synchronous_standby_names = {}").format(Literal(name))
            )
            connection.execute("SELECT pg_reload_conf()")
        wait_until(lambda: self._names_standby(name))
        with psycopg.connect(self.primary.url(), autocommit=True) as connection:
            for _ in range(2):
                connection.execute("CHECKPOINT")

    def _names_standby(self, name: str) -> bool:
        """Tell whether a new connection to the primary knows this name."""
        with psycopg.connect(self.primary.url()) as connection:
            return connection.execute("SHOW synchronous_standby_names").fetchone() == (name,)

    def restore(self) -> None:
        """Make it what it was at first, whatever a test has done and wherever it has failed."""
        if not self.primary.is_running():
            self.primary.start()
        self.wait_for_standby("")
        if not self.standby.is_running():
            self.bring_back()

    def lose_sight(self) -> None:
        """Cut the standby off, so that further commits are on the primary alone."""
        self.keep_up()
        self.standby.stop()

    def fail_over(self) -> None:
        """Kill the primary and let the standby take its place."""
        self.primary.kill()
        wait_until(lambda: not self.primary.is_running())
        if not self.standby.is_running():
            self.standby.start()
        self.standby.promote()
        self.primary, self.standby = self.standby, self.primary

    def bring_back(self) -> None:
        """Make the server that was killed the standby of the other."""
        self.standby.follow(self.primary)
