"""SQLite in WAL mode: three files side by side, so that projecting never delays appending."""

import errno
import os
import shutil
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, closing, contextmanager
from pathlib import Path
from uuid import UUID

from sqlalchemy import Connection, Engine, create_engine, event
from sqlalchemy.exc import OperationalError
from sqlalchemy.pool import QueuePool

from app.adapters.databases import Databases, LogEnd, end_of, find_gap, not_empty, not_whole
from app.adapters.sqlite.file import DatabaseFile, FileLock
from app.security.key_file import alone, sync
from app.watch.trouble import RESTORE
from domain.log.log import Stored
from domain.log.signal import Signal
from projections.engine.database import Database

CONNECTIONS_MAX = 256  # More than `serve` has threads; each is kept, for to open one takes long.
CHECKPOINT_PAGES = 4_000  # 16 MB, so that a page which many commits rewrite is copied once.
BUSY_TIMEOUT_S = 10  # Other processes hold the write lock for milliseconds, so this is generous.


def engine_for(file: DatabaseFile, *, synchronous: str) -> Engine:
    """Open a file. A power cut may lose the newest commits with `synchronous` NORMAL, not FULL."""

    def connect() -> sqlite3.Connection:
        connection = sqlite3.connect(
            file.uri, uri=True, timeout=BUSY_TIMEOUT_S, check_same_thread=False
        )
        # The driver must not begin transactions by itself.
        connection.isolation_level = None
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute(f"PRAGMA synchronous = {synchronous}")
        connection.execute(f"PRAGMA wal_autocheckpoint = {CHECKPOINT_PAGES}")
        # Erased data must leave no bytes behind.
        connection.execute("PRAGMA secure_delete = ON")
        connection.execute("PRAGMA schema_version")
        file.opened()
        return connection

    engine = _engine(connect)

    @event.listens_for(engine, "begin")
    def on_begin(connection: Connection) -> None:
        if how := connection.get_execution_options().get("sqlite_begin", "DEFERRED"):
            connection.exec_driver_sql(f"BEGIN {how}")

    return engine


def _engine(connect: Callable[[], sqlite3.Connection]) -> Engine:
    return create_engine(
        "sqlite://",
        creator=connect,
        poolclass=QueuePool,
        hide_parameters=True,  # Error texts end up in logs; parameters must not.
        pool_size=CONNECTIONS_MAX,
    )


def database_in(file: DatabaseFile, engine: Engine, durable: Engine | None = None) -> Database:
    """Return the database that is used only while its file is at its path."""

    def require() -> None:
        try:
            file.require_lately()
        except sqlite3.OperationalError as error:
            raise OperationalError(None, None, error) from error

    return Database(engine, durable, require)


LOG_LOCK_TIMEOUT_S = 10
LAST_EVENT = (
    "SELECT rowid, originator_id, originator_version, state "
    "FROM stored_events ORDER BY rowid DESC LIMIT 1"
)
FILL = (
    "INSERT INTO stored_events (rowid, originator_id, originator_version, topic, state) "
    "VALUES (?, ?, ?, ?, ?)"
)


class SqliteFiles:
    """Where an installation on SQLite keeps its data; `PostgresDatabase` has the same methods."""

    error = sqlite3.Error

    def __init__(self, url: str) -> None:
        self.path = Path(url.removeprefix("sqlite:///"))
        self._opened = [DatabaseFile(each) for each in self._files()]

    @property
    def location(self) -> str:
        return str(self.path.absolute())

    def beside_the_log(self, purpose: str) -> Path:
        return self.path.with_name(f"{self.path.stem}-{purpose}{self.path.suffix}")

    def log_environment(self) -> dict[str, str]:
        return {
            "PERSISTENCE_MODULE": "eventsourcing.sqlite",
            "SQLITE_DBNAME": DatabaseFile(self.path).uri,
            "SQLITE_LOCK_TIMEOUT": str(LOG_LOCK_TIMEOUT_S),
            "APPLICATION_RECORDER_TOPIC": "app.adapters.sqlite.log:SQLiteLogRecorder",
        }

    def databases(self) -> Databases:
        """Return the databases; the keys lie in the log's own file."""
        log, views, stores = self._opened
        durable = engine_for(stores, synchronous="FULL")
        return Databases(
            database_in(views, engine_for(views, synchronous="NORMAL")),
            database_in(stores, engine_for(stores, synchronous="NORMAL"), durable),
            database_in(log, engine_for(log, synchronous="FULL")),
        )

    def close(self) -> None:
        """Do nothing: files are open in the databases alone."""

    def read_only(self, on_files: Sequence[str] = ()) -> Database:
        """Return the read models through connections that can only read.

        The log's file is attached to each as `log`, and each begins with `on_files`.
        """
        views, log = (
            f"{each.resolve().as_uri()}?mode=ro"
            for each in (self.beside_the_log("views"), self.path)
        )

        def connect() -> sqlite3.Connection:
            connection = sqlite3.connect(
                views, uri=True, timeout=BUSY_TIMEOUT_S, check_same_thread=False
            )
            connection.isolation_level = None
            connection.execute("ATTACH ? AS log", (log,))
            for statement in on_files:
                connection.execute(statement)
            connection.execute("PRAGMA query_only = ON")
            return connection

        return Database(_engine(connect))

    def waker(self, _appended: Signal) -> None:
        """Return None: nothing tells of the commits of other processes, so followers look."""

    def lock(self, name: str) -> FileLock:
        return FileLock(self._lock_file(name))

    def exists(self) -> bool:
        """Tell whether the log exists; opening a missing file would create an empty one."""
        return self.path.is_file()

    def has_all_files(self) -> bool:
        return all(each.is_file() for each in self._files())

    def fault(self) -> str | None:
        """Name the first file that is no longer the one that was opened here, or a lost log."""
        for file in self._opened:
            try:
                file.require()
            except sqlite3.OperationalError as error:
                return f"DATABASE_URL: {error}"
        # In this order, because another process may just be making all of them, the log first.
        if self.occupied() is not None and not self.path.exists():
            gone = f"the log {self.location} is gone, but the files beside it are there"
            return f"DATABASE_URL: {gone}; {RESTORE}"
        return None

    @contextmanager
    def migrating(self) -> Iterator[None]:
        """Lock a file; create the databases with mode 0600, because they hold personal data."""
        with self._alone():
            for file in self._files():
                file.touch(mode=0o600)  # SQLite keeps the mode.
            yield

    def protect_log(self) -> None:
        """Do nothing: whoever can write to a file can change it."""

    def may_change_events(self) -> bool:
        """Return False, because no role could be forbidden to."""
        return False

    def copy_to(self, directory: Path) -> LogEnd:
        """Copy the log with its keys, then the own stores, each as of one moment.

        In this order the stores are never older than the log. So the simulated network may have an
        endpoint that the log lacks, as a real network may, but it has every endpoint of the log.
        """
        for file, copy in self._copies(directory):
            _copy_database(file, copy)
        with closing(sqlite3.connect(self._copies(directory)[0][1])) as log:
            return end_of(log.execute(LAST_EVENT).fetchone())

    def dump_commands(self, _directory: Path) -> list[str]:
        """Return none, because `copy_to` has copied the files."""
        return []

    def topics(self, directory: Path) -> list[str]:
        log = self._copies(directory)[0][1].resolve().as_uri()
        with closing(sqlite3.connect(f"{log}?mode=ro", uri=True)) as connection:
            return [
                row[0] for row in connection.execute("SELECT DISTINCT topic FROM stored_events")
            ]

    def occupied(self) -> str | None:
        """Name the first file of an installation that exists."""
        with_logs = (f"{file}{end}" for file in self._files() for end in ("", "-wal", "-journal"))
        return next((name for name in with_logs if Path(name).exists()), None)

    def put_back(self, directory: Path) -> bool:
        """Copy the files into place, the log last, because without it there is no installation."""
        with self._alone():
            if (name := self.occupied()) is not None:  # A service may have started meanwhile.
                raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), name)
            copied = [
                (copy, file, file.with_name(f"{file.name}.restoring"))
                for file, copy in self._copies(directory)
            ]
            for copy, _, draft in copied:
                draft.unlink(missing_ok=True)  # Left behind by a killed restore.
                draft.touch(mode=0o600)
                shutil.copyfile(copy, draft)
                sync(draft)
            for _, file, draft in reversed(copied):
                draft.rename(file)
            sync(self.path.parent)
        return True

    def fill_log(self, rows: Iterable[Stored]) -> None:
        """Write a whole log at its own positions, in one transaction; later events follow it.

        Raises NotPossible if the log holds an event, or if the rows lack a version of a stream.
        """
        name = DatabaseFile(self.path).uri
        with closing(sqlite3.connect(name, BUSY_TIMEOUT_S, isolation_level=None, uri=True)) as log:
            log.execute("PRAGMA synchronous = FULL")
            log.execute("BEGIN IMMEDIATE")  # Closing rolls back what is not committed.
            if log.execute(LAST_EVENT).fetchone():
                raise not_empty(self.location)
            values = ((at, stream.hex, *event) for at, stream, *event in rows)
            try:
                log.executemany(FILL, values)
            except sqlite3.IntegrityError as error:
                raise not_whole() from error
            if (gap := log.execute(find_gap("stored_events")).fetchone()) is not None:
                raise not_whole(UUID(gap[0]))
            log.execute("COMMIT")

    def _alone(self) -> AbstractContextManager[None]:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        return alone(self._lock_file("migrate"))

    def _files(self) -> tuple[Path, Path, Path]:
        return self.path, self.beside_the_log("views"), self.beside_the_log("stores")

    def _copies(self, directory: Path) -> list[tuple[Path, Path]]:
        """Return the files that cannot be rebuilt, log first, each with its backup's path."""
        log, _, stores = self._files()
        return [(log, directory / "log.db"), (stores, directory / "stores.db")]

    def _lock_file(self, name: str) -> Path:
        return self.beside_the_log(name).with_suffix(".lock")


def _copy_database(file: Path, copy: Path) -> None:
    """Copy a file in one read transaction, which delays no writer."""
    copy.touch(mode=0o600)
    try:
        with (
            closing(sqlite3.connect(f"{file.resolve().as_uri()}?mode=rw", uri=True)) as old,
            closing(sqlite3.connect(copy, isolation_level=None)) as new,
        ):
            old.backup(new)
            new.execute("PRAGMA journal_mode = DELETE")  # So that the copy is a single file.
            found = new.execute("PRAGMA quick_check(1)").fetchone()[0]
    except sqlite3.Error as error:
        raise OSError(errno.EIO, str(error), str(copy)) from error
    if found != "ok":
        raise OSError(errno.EIO, "the database is damaged", str(file))
    sync(copy)
