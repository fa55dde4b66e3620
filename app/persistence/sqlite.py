"""SQLite: three files beside each other, so that projecting never holds up appending."""

import fcntl
import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from app.persistence.file_lock import FileLock
from app.persistence.sqlite_engine import engine_for
from app.persistence.sqlite_waker import SqliteWaker
from domain.signal import Signal
from domain.turns import NoTurns
from projections.database import Database

LOG_LOCK_TIMEOUT_S = 10


class SqliteFiles:
    """Where an installation on SQLite keeps things."""

    error: type[Exception] = sqlite3.Error

    def __init__(self, url: str) -> None:
        self.path = Path(url.removeprefix("sqlite:///"))

    @property
    def place(self) -> str:
        """Name the file of the log."""
        return str(self.path)

    def beside_the_log(self, purpose: str) -> Path:
        """Return the path of another file of this installation."""
        return self.path.with_name(f"{self.path.stem}-{purpose}{self.path.suffix}")

    def log_environment(self) -> dict[str, str]:
        """Return the settings of the event log's library."""
        return {
            "PERSISTENCE_MODULE": "eventsourcing.sqlite",
            "SQLITE_DBNAME": str(self.path),
            "SQLITE_LOCK_TIMEOUT": str(LOG_LOCK_TIMEOUT_S),
            "APPLICATION_RECORDER_TOPIC": "app.persistence.sqlite_log:SQLiteLogRecorder",
        }

    def databases(self) -> tuple[Database, Database, Database]:
        """Return the read models, the own stores, and the keys, which lie in the log's own file."""
        views, stores = (
            Database(engine_for(self.beside_the_log(purpose), synchronous="NORMAL"))
            for purpose in ("views", "stores")
        )
        return views, stores, Database(engine_for(self.path, synchronous="FULL"))

    def waker(self, appended: Signal) -> SqliteWaker:
        """Return what hears of commits to the log, in whatever process."""
        return SqliteWaker(appended, self.path)

    def lock(self, name: str) -> FileLock:
        """Return a lock that one process holds, until it lets go or is gone."""
        return FileLock(self._lock_file(name))

    def turns(self) -> NoTurns:
        """Return no turns: processes that share a file are few, and a lost race costs no more."""
        return NoTurns()

    def exists(self) -> bool:
        """Tell whether the log is there: opening a file that is not would make an empty one."""
        return self.path.is_file()

    @contextmanager
    def migrating(self) -> Iterator[None]:
        """Hold a lock file; make the files, which hold personal data and keys, for us alone."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(self._lock_file("migrate"), os.O_CREAT | os.O_RDWR, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            for file in (self.path, self.beside_the_log("views"), self.beside_the_log("stores")):
                file.touch(mode=0o600)  # SQLite keeps the mode.
            yield
        finally:
            os.close(descriptor)

    def _lock_file(self, name: str) -> Path:
        return self.beside_the_log(name).with_suffix(".lock")
