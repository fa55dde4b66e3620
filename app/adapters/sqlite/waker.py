"""Wakes followers on SQLite: at once within a process, by `data_version` across processes."""

import sqlite3
import time
from pathlib import Path
from threading import Lock

from app.adapters.sqlite.file import DatabaseFile
from domain.log.signal import Signal

POLL_S = 0.4  # How often the file is asked whether another process has written to it.


class SqliteWaker:
    """Watches this process and the file of the log."""

    def __init__(self, appended: Signal, path: Path) -> None:
        self._appended = appended
        self._path = path
        self._lock = Lock()
        self._connection: sqlite3.Connection | None = None
        self._version = 0

    @property
    def count(self) -> int:
        """A count of commits, to pass to `wait` as the mark."""
        return self._appended.count

    def wait(self, seen: int, timeout_s: float) -> bool:
        """Wait until the log has grown since the mark, at most `timeout_s`."""
        deadline = time.monotonic() + timeout_s
        while (left_s := deadline - time.monotonic()) > 0:
            if self._appended.wait(seen, min(left_s, POLL_S)):
                return True
            self._check()
        return self._appended.count != seen

    def start(self) -> None:
        """Do nothing, because each thread that waits asks the file itself."""

    def close(self) -> None:
        with self._lock:
            connection, self._connection = self._connection, None
            if connection is not None:
                connection.close()

    def _check(self) -> None:
        """Wake everybody in this process if another process has written."""
        with self._lock:
            version = self._read()
            if version is not None and version != self._version:
                self._version = version
                self._appended.call()

    def _read(self) -> int | None:
        """Ask the file; None on failure, which wakes nobody, because all waits have a limit."""
        try:
            if self._connection is None:
                uri = DatabaseFile(self._path).uri
                self._connection = sqlite3.connect(uri, uri=True, check_same_thread=False)
            (version,) = self._connection.execute("PRAGMA data_version").fetchone()
        except sqlite3.Error:
            self._connection = None
            return None
        return int(version)
