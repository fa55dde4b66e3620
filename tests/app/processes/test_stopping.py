"""The first SIGTERM asks a process to end; the second ends it."""

import signal
import subprocess
import sys

import pytest

from tests.app.cli.shell import ROOT, TIMEOUT_S

PROGRAM = """
from app.processes.stopping import stop_on_signals
stop = stop_on_signals()
print("listening", flush=True)
stop.wait()
print("asked", flush=True)
{then}
"""
WAIT = "import threading; threading.Event().wait()"


def started(then: str = "") -> subprocess.Popen[str]:
    command = [sys.executable, "-c", PROGRAM.format(then=then)]
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "listening\n"
    return process


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_asks_and_the_process_ends_as_it_likes(number: int) -> None:
    process = started()
    process.send_signal(number)
    out, _ = process.communicate(timeout=TIMEOUT_S)
    assert (process.returncode, out) == (0, "asked\n")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_second_signal_ends_a_process_that_hangs(number: int) -> None:
    process = started(WAIT)
    process.send_signal(number)
    assert process.stdout is not None
    assert process.stdout.readline() == "asked\n"
    process.send_signal(number)
    process.communicate(timeout=TIMEOUT_S)
    assert process.returncode == -number


HOLDING = """
import signal
from app.processes.stopping import stop_on_signals
stop = stop_on_signals()
with stop._cond:  # As `wait` does for a moment, when a signal may come too.
    signal.raise_signal(signal.SIGTERM)
stop.wait()
"""


def test_a_signal_that_comes_while_the_event_is_held_is_no_deadlock() -> None:
    command = [sys.executable, "-c", HOLDING]
    assert subprocess.run(command, cwd=ROOT, timeout=TIMEOUT_S, check=False).returncode == 0
