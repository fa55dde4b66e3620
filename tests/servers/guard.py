"""A process of its own that ends a server when the tests are over, however they ended.

Its standard input is a pipe from the tests: it closes when they say so, or when they are gone.
Run as `python -m tests.servers.guard DIRECTORY SIGNAL=PID_FILE…`.
"""

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from threading import Event

ROOT = Path(__file__).parents[2]
END_S = 15.0  # A server that has been told to end at once needs less.
LOOK_S = 0.02


class Guard:
    """Stops what the PID files in a directory name, then removes the directory."""

    def __init__(self, directory: Path, ends: Sequence[str]) -> None:
        command = [sys.executable, "-m", "tests.servers.guard", str(directory), *ends]
        self._process = subprocess.Popen(
            command,
            cwd=ROOT,
            stdin=subprocess.PIPE,
            start_new_session=True,  # Ctrl-C is for the tests.
        )

    def end(self) -> None:
        """End the server now."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(2 * END_S)


def pid_in(file: Path) -> int | None:
    """Return the process that a PID file names in its first line; None: there is no such file."""
    with suppress(OSError, ValueError, IndexError):
        return int(file.read_text().split()[0])
    return None


def is_running(pid: int) -> bool:
    """Tell whether a process runs; one that has ended and is not yet reaped does not."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    with suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in {"Z", "X"}
    return True


def children(pid: int) -> list[int]:
    """Return the processes that this one has started and that still run."""
    with suppress(OSError):
        files = list(Path(f"/proc/{pid}/task").glob("*/children"))
        return [int(child) for file in files for child in file.read_text().split()]
    return []


def wait_for(condition: Callable[[], bool], timeout_s: float) -> bool:
    """Look until a condition holds or the time is over; tell which."""
    pulse, deadline = Event(), time.monotonic() + timeout_s
    while not condition():
        if time.monotonic() > deadline:
            return False
        pulse.wait(LOOK_S)
    return True


def send(pid: int, number: int) -> bool:
    """Send a signal and wait for the end; tell whether it came."""
    with suppress(ProcessLookupError):
        os.kill(pid, number)
    return wait_for(lambda: not is_running(pid), END_S)


def main(directory: Path, ends: Sequence[str]) -> None:
    sys.stdin.read()
    for each in ends:
        name, _, file = each.partition("=")
        pid = pid_in(directory / file)
        if pid is not None and not send(pid, signal.Signals[name]):
            send(pid, signal.SIGKILL)
    shutil.rmtree(directory, ignore_errors=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
