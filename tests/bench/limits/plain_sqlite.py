"""SQLite by the driver alone, with the pragmas that our own files have."""

import sqlite3
from pathlib import Path

from app.adapters.sqlite.database import CHECKPOINT_PAGES

BUSY_TIMEOUT_S = 10


def connect(path: Path, *, synchronous: str) -> sqlite3.Connection:
    """Open a file in WAL mode; transactions begin and end where the caller says."""
    connection = sqlite3.connect(
        path, timeout=BUSY_TIMEOUT_S, isolation_level=None, check_same_thread=False
    )
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute(f"PRAGMA synchronous = {synchronous}")
    if synchronous == "NORMAL":  # As the read models have it, not the log.
        connection.execute(f"PRAGMA wal_autocheckpoint = {CHECKPOINT_PAGES}")
    return connection
