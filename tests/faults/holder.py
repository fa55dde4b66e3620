"""Which process holds a lock of PostgreSQL: the one whose socket is the holder's connection."""

from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

import psycopg

from app.adapters.postgres.lock import key_of

HOLDERS = """
    SELECT a.client_port FROM pg_locks l JOIN pg_stat_activity a USING (pid)
    WHERE l.locktype = 'advisory' AND l.granted AND l.objsubid = 1
    AND (l.classid::bigint << 32 | l.objid::bigint) = %s
"""


def holder_of(url: str, name: str, pids: Iterable[int]) -> int | None:
    """Return which of these processes holds the lock of a name; None when none does."""
    with suppress(psycopg.Error), psycopg.connect(url, connect_timeout=2) as connection:
        ports = {row[0] for row in connection.execute(HOLDERS, [key_of(name)])}
        for pid in pids:
            if ports & _local_ports(pid):
                return pid
    return None


def _local_ports(pid: int) -> set[int]:
    """Return the local ports of the TCP connections of a process."""
    with suppress(OSError):
        inodes = {file.readlink().name for file in Path(f"/proc/{pid}/fd").iterdir()}
        rows = [line.split() for line in Path(f"/proc/{pid}/net/tcp").read_text().splitlines()[1:]]
        return {
            int(row[1].rpartition(":")[2], 16) for row in rows if f"socket:[{row[9]}]" in inodes
        }
    return set()
