"""A backup of the log that is restored while everything beside it is newer."""

import subprocess
from pathlib import Path

from tests.faults.servers import program
from tests.faults.system import System

# What has to be backed up; all else can be rebuilt or lost.
TABLES = ("log_events", "personal_keys", "personal_key_branches")
STEP_S_MAX = 60.0


def back_up(system: System) -> Path:
    """Dump the rows of the log and of the keys of personal data; return the file."""
    dump = system.directory / "backup.sql"
    chosen = [f"--table={table}" for table in TABLES]
    _run("pg_dump", "--data-only", *chosen, "--file", dump, system.database_url)
    return dump


def restore(system: System, dump: Path) -> None:
    """Put the log back to where it was; nobody else may be connected to it meanwhile.

    The tables stay, because views read them.
    """
    stop = ["--set", "ON_ERROR_STOP=1", "--single-transaction", "--quiet"]
    empty = ["--command", f"TRUNCATE {', '.join(TABLES)}"]
    _run("psql", "--no-psqlrc", *stop, *empty, "--file", dump, system.database_url)


def _run(name: str, *arguments: str | Path) -> None:
    command = [program(name), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=STEP_S_MAX)
    assert done.returncode == 0, done.stderr
