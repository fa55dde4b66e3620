"""The fixtures of the domain's tests: logs and their writers, and organizations that buy."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import domain.accounts.committer
from domain.accounts.committer import Committer
from domain.links import driver
from domain.log.log import Log
from tests.domain.buying import Buyer, NewBuyer, Patience
from tests.domain.crowd import Crowd, WatchedQueue
from tests.domain.faults import FaultyRecorder
from tests.domain.writers import Writer, WriterFactory, open_log
from tests.installation import PATIENCE_S, Installation, SetClock


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

    monkeypatch.setattr(domain.accounts.committer, "SimpleQueue", watched)
    writer = new_writer()
    with Crowd(writer, queues[0]) as crowd:
        yield crowd


@pytest.fixture
def patience(monkeypatch: pytest.MonkeyPatch) -> Patience:
    """How long requests go on waiting."""
    made = Patience()
    for command in ("create", "change_plans", "readings", "driver", "waiting"):
        monkeypatch.setattr(f"domain.links.{command}.time", made)
    return made


@pytest.fixture
def long_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let nobody who waits for others be late, however slow the machine is."""
    monkeypatch.setattr(driver, "CALL_S", PATIENCE_S)
    monkeypatch.setattr(driver, "WITHIN_S", 4 * PATIENCE_S)


@pytest.fixture
def new_buyer(installation: Installation) -> Iterator[NewBuyer]:
    """Make organizations for which nobody works yet; at the end their log is right."""
    made: list[Buyer] = []

    def make(amount: str = "10.00", **more: object) -> Buyer:
        made.append(Buyer(installation, amount, **more))  # type: ignore[arg-type]  # as they come
        return made[-1]

    yield make
    for each in made:
        each.check()
        each.close()


@pytest.fixture
def buyer(new_buyer: NewBuyer) -> Buyer:
    """An organization with 10.00 for which nobody works yet."""
    return new_buyer()


@pytest.fixture
def clocked_buyer(new_buyer: NewBuyer, clock: SetClock) -> Buyer:
    """An organization with 10.00 and with workers, all of them at the time of the clock."""
    buyer = new_buyer(clock=clock)
    buyer.hire()
    return buyer
