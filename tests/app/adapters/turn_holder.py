"""A process that takes a turn and keeps it: `python -m tests.app.adapters.turn_holder URL ID`.

Its output begins when it holds the turn; it ends the turn when its input ends.
"""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from uuid import UUID

from app.adapters.postgres.database import PostgresDatabase

PATIENCE_S = 20.0


@contextmanager
def holder(url: str, wallet: UUID) -> Iterator[subprocess.Popen[bytes]]:
    """Run a process that holds the turn at a wallet."""
    arguments = [sys.executable, "-m", __name__, url, str(wallet)]
    with subprocess.Popen(arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"held\n"
        try:
            yield process
        finally:
            process.kill()


if __name__ == "__main__":
    turns = PostgresDatabase(sys.argv[1]).turns()
    assert turns.take([UUID(sys.argv[2])])
    sys.stdout.write("held\n")
    sys.stdout.flush()
    sys.stdin.read()
    turns.end()
    turns.close()
