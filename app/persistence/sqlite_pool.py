"""The library's connection pool, made to give the write lock back when it has no connection."""

from threading import local
from typing import Self

from eventsourcing.sqlite import SQLiteConnection, SQLiteConnectionPool


class ReleasingPool(SQLiteConnectionPool):
    """Gives back what `get_connection` has taken before it failed.

    The library (9.5.6) takes the write lock first and the connection then; if the second step
    raises, nobody could ever write again.
    """

    def __init__(self, db_name: str, lock_timeout: int | None, pool_timeout: float) -> None:
        super().__init__(db_name=db_name, lock_timeout=lock_timeout, pool_timeout=pool_timeout)
        self._wanted = local()

    @classmethod
    def like(cls, pool: SQLiteConnectionPool) -> Self:
        """Return a pool for the same file; the given one must be unused."""
        assert not pool.num_in_use, "a pool that is in use"
        pool.close()
        return cls(pool.db_name, pool.lock_timeout, pool.pool_timeout)

    def _create_connection(self) -> SQLiteConnection:
        """Open the file so that a commit survives a power cut, whatever SQLite was built with."""
        connection = super()._create_connection()
        connection.cursor().execute("PRAGMA synchronous = FULL")
        return connection

    def get_connection(
        self, timeout: float | None = None, *, is_writer: bool | None = None
    ) -> SQLiteConnection:
        """Lend a connection; a failure leaves no lock behind."""
        self._wanted.is_writer = is_writer
        return super().get_connection(timeout, is_writer=is_writer)

    def _get_connection(self, timeout: float = 0.0) -> SQLiteConnection:
        try:
            return super()._get_connection(timeout)
        except BaseException:
            self._give_back()
            raise

    def close(self) -> None:
        """Close what is not lent out; a connection in use is closed when it comes back.

        The library closes those too, under the hands of the threads that read from them, and
        SQLite then ends the process.
        """
        with self._put_condition:
            self._closed = True
            while self._pool:
                self._pool.popleft().close()

    def put_connection(self, conn: SQLiteConnection) -> None:
        """Take a connection back."""
        with self._put_condition:
            if not self._closed:
                super().put_connection(conn)
                return
            self._in_use.pop(id(conn), None)
        conn.close()

    def _give_back(self) -> None:
        is_writer, self._wanted.is_writer = self._wanted.is_writer, None
        if is_writer is True:
            self._num_writers -= 1
            self._writer_lock.release()
        elif is_writer is False:
            with self._no_readers:
                self._num_readers -= 1
                self._no_readers.notify()
