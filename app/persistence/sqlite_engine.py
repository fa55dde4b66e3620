"""SQLAlchemy engines for SQLite files in WAL mode."""

from pathlib import Path
from typing import Any

from sqlalchemy import URL, Connection, Engine, create_engine, event

CONNECTIONS_MAX = 256  # A thread keeps the one that it reads on; `serve` has about a hundred.
CHECKPOINT_PAGES = 4_000  # 16 MB: what many commits write again goes to the file once.
BUSY_TIMEOUT_S = 10  # Another process holds the write lock for milliseconds; this is generous.


def engine_for(path: Path, *, synchronous: str) -> Engine:
    """Open a file. `synchronous`: FULL survives a power cut, NORMAL may lose the newest commits."""
    engine = create_engine(
        URL.create("sqlite", database=str(path)),  # Not as text: a name may hold a `?`.
        connect_args={"timeout": BUSY_TIMEOUT_S, "check_same_thread": False},
        hide_parameters=True,  # An error text ends in a log; what was written must not.
        pool_size=16,
        max_overflow=CONNECTIONS_MAX - 16,
    )

    @event.listens_for(engine, "connect")
    def configure(connection: Any, _: Any) -> None:
        connection.isolation_level = None  # The driver must not begin transactions by itself.
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute(f"PRAGMA synchronous = {synchronous}")
        connection.execute(f"PRAGMA wal_autocheckpoint = {CHECKPOINT_PAGES}")
        connection.execute("PRAGMA secure_delete = ON")  # What is erased leaves no bytes behind.

    @event.listens_for(engine, "begin")
    def begin(connection: Connection) -> None:
        options = connection.get_execution_options()
        if options.get("isolation_level") != "AUTOCOMMIT":
            connection.exec_driver_sql(f"BEGIN {options.get('sqlite_begin', 'DEFERRED')}")

    return engine
