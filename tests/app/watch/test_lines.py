"""What a process prints waits for nobody; what is lost is counted, and said once there is room."""

import logging
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from io import TextIOWrapper
from select import select
from threading import Event

import pytest

from app.watch import lines
from app.watch.lines import WAIT_S, Lines
from tests.installation import wait_until

# A process that ends while nobody reads what it has printed.
ENDING = """
import sys
from app.watch.lines import Lines

sys.stderr = Lines(sys.stderr)
sys.stderr.write("x" * 1_000_000)
"""


LINE = "{:0999}\n"
FIT = 2_000


class Pipe:
    """A pipe, and lines into it."""

    def __init__(self) -> None:
        self.reading, writing = os.pipe()
        self.inner = TextIOWrapper(os.fdopen(writing, "wb"), write_through=True)
        self.lines = Lines(self.inner)
        self.waiting = self.lines._texts  # noqa: SLF001  # Nobody else has to know what waits.

    def fill(self) -> None:
        """Let it take no more, and its thread hang."""
        self.lines.write("x" * 1_000_000 + "\n")
        wait_until(lambda: not select([], [self.inner], [], 0)[1])

    def read(self) -> str:
        """Read until nothing more comes."""
        os.set_blocking(self.reading, False)
        found, reached = bytearray(), Event()
        self.waiting.put(reached)

        def is_over() -> bool:
            has_all = reached.is_set()
            with suppress(BlockingIOError):
                while True:
                    found.extend(os.read(self.reading, 1 << 20))
            return has_all

        wait_until(is_over)
        return found.decode()


@pytest.fixture
def pipe() -> Iterator[Pipe]:
    made = Pipe()
    yield made
    made.read()
    made.lines.flush()
    made.inner.close()
    os.close(made.reading)


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    monkeypatch.setattr(lines, "_count", None)  # Is set back afterwards.
    monkeypatch.setattr(lines, "CHARS_MAX", FIT * len(LINE.format(0)))
    found: list[int] = []
    lines.count_dropped(found.append)
    return found


def test_what_is_written_comes_whole_and_in_order(pipe: Pipe) -> None:
    written = [f"line {number} {'+' * (number * 10)}\n" for number in range(600)]
    for each in written:
        pipe.lines.write(each)
    assert pipe.read() == "".join(written)


def test_what_does_not_fit_is_dropped_counted_and_said_when_there_is_room(
    pipe: Pipe, counted: list[int], caplog: pytest.LogCaptureFixture
) -> None:
    pipe.fill()
    for number in range(FIT + 7):
        pipe.lines.write(LINE.format(number))
    assert sum(counted) == 7
    assert not caplog.messages
    assert [*map(int, pipe.read().splitlines()[1:])] == [*range(FIT)]
    wait_until(lambda: bool(caplog.messages))
    assert caplog.messages == ["7 log lines were dropped: they were not read in time"]
    assert caplog.records[0].levelno == logging.WARNING


def test_however_long_lines_become_they_take_little_memory(
    pipe: Pipe, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lines, "CHARS_MAX", 40_000)
    pipe.fill()
    for waiting in range(1, 1_000):  # The longest that may wait then.
        pipe.lines.write("+" * (40_000 // waiting))
    assert 40_000 * 4 < pipe.read().count("+") < 40_000 * 8


def test_what_must_be_written_is_kept_and_waits_a_second(pipe: Pipe, counted: list[int]) -> None:
    pipe.fill()
    for number in range(FIT):
        pipe.lines.write(LINE.format(number))
    began_s = time.monotonic()
    pipe.lines.write(f"{'the end':>999}\n", must=True)
    assert WAIT_S * 0.9 < time.monotonic() - began_s < WAIT_S * 5
    assert not counted
    assert pipe.read().splitlines()[-1].strip() == "the end"


def test_what_must_be_written_is_there_at_once(pipe: Pipe) -> None:
    pipe.lines.write("before\n")
    pipe.lines.write("the end\n", must=True)
    assert os.read(pipe.reading, 100) == b"before\nthe end\n"


def test_lines_for_a_reader_that_is_gone_are_lost_and_counted(counted: list[int]) -> None:
    pipe = Pipe()
    os.close(pipe.reading)
    pipe.lines.write("a\n")
    pipe.lines.write("b\n")
    pipe.lines.flush()
    assert sum(counted) == 2
    pipe.inner.close()


def test_a_file_that_does_not_want_to_wait_gets_every_line(pipe: Pipe) -> None:
    os.set_blocking(pipe.inner.fileno(), False)
    pipe.lines.write("x" * 1_000_000 + "\n")
    assert pipe.read() == "x" * 1_000_000 + "\n"


def test_no_line_obeys_or_hides_in_a_terminal(pipe: Pipe) -> None:
    pipe.lines.write("a\x1b[2J\u202e\nb \ud800\n", must=True)
    assert os.read(pipe.reading, 100) == b"a\\x1b[2J\\u202e\nb \\ud800\n"


def test_a_process_ends_though_nobody_reads_what_it_has_printed() -> None:
    command = [sys.executable, "-c", ENDING]
    with subprocess.Popen(command, stderr=subprocess.PIPE) as process:
        assert process.wait(timeout=30) == 0
