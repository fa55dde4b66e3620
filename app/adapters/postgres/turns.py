"""Turns at wallets on PostgreSQL: advisory locks of a transaction, on a connection of its own."""

import logging
import time
from collections.abc import Sequence
from contextlib import suppress
from uuid import UUID

import psycopg

from app.adapters.postgres.connection import BoundedConnection
from app.adapters.postgres.lock import key_of

WAIT_MS = 200  # The longest wait for a turn; then the batch goes on without a turn.
ANSWER_S = 1.0  # The longest wait for a server, or a proxy before it, that does not answer.
HOLD_MS_MAX = 1_000  # The server ends the session of a holder that stands still for longer.
REST_S = 1.0  # The pause after a server could not be reached or has failed.

CALL_OPTIONS = {  # A server that vanished must not hold up a batch for long.
    "connect_timeout": 2,
    "keepalives_idle": 1,
    "keepalives_interval": 1,
    "keepalives_count": 1,
    "tcp_user_timeout": 1_000,
}

logger = logging.getLogger(__name__)


class PostgresTurns:
    """Takes turns in the order of asking; a turn ends with its transaction or its connection.

    One statement takes all locks in the order of their numbers, so that no two waiters deadlock.
    """

    def __init__(self, conninfo: str) -> None:
        self._conninfo = psycopg.conninfo.make_conninfo(conninfo, **CALL_OPTIONS)
        self._connection: BoundedConnection | None = None
        self._rests_until = 0.0

    def take(self, wallet_ids: Sequence[UUID]) -> bool:
        """Wait for the turn at all of these wallets; tell whether it came."""
        if time.monotonic() < self._rests_until:
            return False
        keys = sorted(key_of(f"turn {wallet_id}") for wallet_id in wallet_ids)
        locks = ", ".join(f"pg_advisory_xact_lock('{key}')" for key in keys)
        try:
            self._connected().execute(f"BEGIN; SELECT {locks}")
        except psycopg.errors.QueryCanceled:
            self.end()  # Releases the locks that were taken before.
            return False
        except psycopg.Error as error:
            logger.info("no turns at wallets for now: %s", type(error).__name__)
            self._rests_until = time.monotonic() + REST_S
            self.close()
            return False
        return True

    def end(self) -> None:
        """End the turn, so that the next process can begin."""
        if self._connection is not None:
            try:
                self._connection.execute("ROLLBACK")  # There is nothing to commit.
            # The server has ended the session: this process stood still, or the server restarted.
            except psycopg.Error:
                self.close()

    def close(self) -> None:
        """Close the connection, which also ends the turn."""
        connection, self._connection = self._connection, None
        if connection is not None:
            with suppress(psycopg.Error):
                connection.close()

    def _connected(self) -> psycopg.Connection:
        if self._connection is None:
            pause = f"SET idle_in_transaction_session_timeout = {HOLD_MS_MAX}"
            self._connection = BoundedConnection.open(self._conninfo, pause)
            self._connection.run(f"SET statement_timeout = {WAIT_MS}")
            self._connection.answer_s = ANSWER_S
        return self._connection
