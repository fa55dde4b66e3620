"""Real logs on temporary SQLite files, with a committer each."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import domain.committer
from domain.application import Log
from domain.committer import Committer
from tests.domain.crowd import Crowd, WatchedQueue
from tests.domain.faults import FaultyRecorder
from tests.domain.writers import Writer, WriterFactory, open_log


@pytest.fixture
def log_file(tmp_path: Path) -> Path:
    return tmp_path / "log.sqlite"


@pytest.fixture
def new_writer(log_file: Path) -> Iterator[WriterFactory]:
    """Make writers as separate processes would have them: a log and a committer on one file."""
    writers: list[Writer] = []

    def make() -> Writer:
        log = open_log(log_file, FaultyRecorder)
        writers.append(Writer(log, Committer(log)))
        return writers[-1]

    yield make
    for writer in writers:
        writer.committer.close()
        writer.log.close()


@pytest.fixture
def writer(new_writer: Callable[[], Writer]) -> Writer:
    return new_writer()


@pytest.fixture
def other(new_writer: Callable[[], Writer], writer: Writer) -> Writer:
    """The writer of another process on the same file."""
    del writer  # It has made the tables.
    return new_writer()


@pytest.fixture
def log(writer: Writer) -> Log:
    return writer.log


@pytest.fixture
def committer(writer: Writer) -> Committer:
    return writer.committer


@pytest.fixture
def crowd(monkeypatch: pytest.MonkeyPatch, new_writer: WriterFactory) -> Iterator[Crowd]:
    """Callers of one more writer, whose queue can be watched."""
    queues: list[WatchedQueue] = []

    def watched() -> WatchedQueue:
        queues.append(WatchedQueue())
        return queues[-1]

    monkeypatch.setattr(domain.committer, "SimpleQueue", watched)
    writer = new_writer()
    with Crowd(writer, queues[0]) as crowd:
        yield crowd
