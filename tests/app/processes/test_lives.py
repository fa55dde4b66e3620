"""The one loop that begins anew; real failovers are in `adapters/postgres/test_failover.py`."""

from collections.abc import Callable
from pathlib import Path

import pytest
from eventsourcing.persistence import OperationalError

from app.bootstrap.container import Container
from app.processes.lives import Lives
from domain.accounts.organization import Organization
from domain.log.log import Log
from tests.installation import Installation, wait_until


class Work:
    """What begins and ends with each container."""

    def __init__(self) -> None:
        self.begun: list[Container] = []
        self.ended: list[Container] = []

    def begin(self, container: Container) -> Callable[[], None]:
        self.begun.append(container)
        return lambda: self.ended.append(container)


@pytest.fixture
def installation(tmp_path: Path) -> Installation:
    return Installation(tmp_path)


def end_log(process: Container) -> None:
    process.log._has_lost = True  # noqa: SLF001  # As an insert without its predecessor does.


def test_work_begins_anew_with_another_container_and_the_old_one_ends(
    installation: Installation,
) -> None:
    old, work = installation.process(), Work()
    lives = Lives(old)
    lives.start(work.begin)
    organization = old.organization("1.00")
    end_log(old)
    wait_until(lambda: lives.now is not old and work.ended == [old])
    assert work.begun == [old, lives.now]
    assert lives.now.metrics is old.metrics, "counters go on"
    assert lives.now.log.find(Organization, organization) is not None
    lives.stop()
    assert work.ended == work.begun


def test_a_new_server_that_takes_no_writes_yet_is_tried_again(
    installation: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    tries: list[int] = []

    def refuse_twice(_: Log, seen: int) -> None:
        tries.append(seen)
        if len(tries) < 3:
            raise (OperationalError if len(tries) == 1 else ValueError)

    monkeypatch.setattr(Log, "record_loss", refuse_twice)
    monkeypatch.setattr("app.processes.lives.AGAIN_S", 0.01)
    old, work = installation.process(), Work()
    lives = Lives(old)
    lives.start(work.begin)
    old.organization("1.00")
    seen = old.log.seen
    end_log(old)
    wait_until(lambda: lives.now is not old)
    assert tries == [seen] * 3
    assert len(work.begun) == 2
    lives.stop()
