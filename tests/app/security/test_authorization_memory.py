"""Authorization remembers a row while it would be believed and no commit has outdated it."""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from threading import Event, Thread
from typing import Any
from uuid import uuid4

import psycopg
import pytest

from app.adapters.postgres import waker
from app.adapters.postgres.database import conninfo
from app.adapters.postgres.waker import CHANNEL, PostgresWaker
from app.security import authorization
from app.security.authorization import Memory
from domain.errors import OrganizationSuspended, Unauthorized
from projections.engine.follower import Follower
from projections.engine.hot_reads import HotStatement
from tests.app.house import House
from tests.installation import (
    PATIENCE_S,
    Installation,
    Process,
    SetClock,
    postgresql_only,
    wait_until,
)
from tests.scenarios.relay import Relay

Rows = Sequence[Sequence[Any]]

pytestmark = postgresql_only("on SQLite nothing tells of other processes, so nothing is remembered")


def listening(process: Process) -> Process:
    """Let a process hear of commits, and wait until it does."""
    process.listen()
    appended = process.log.appended
    wait_until(lambda: appended.hears_others and appended.count > 0)
    return process


@pytest.fixture
def house(installation: Installation) -> House:
    """A house whose client has been let in: from now on it is remembered."""
    clock = SetClock()
    house = House(listening(installation.process(clock)), clock)
    heard(house)
    house.authorize()
    house.project()
    return house


@pytest.fixture
def elsewhere(installation: Installation, house: House) -> House:
    """The same house as another process sees it."""
    seen = object.__new__(House)
    seen.__dict__.update(house.__dict__, process=installation.process(house.clock))
    return seen


@pytest.fixture
def reads(house: House, monkeypatch: pytest.MonkeyPatch) -> list[HotStatement]:
    """The rows that were read, each as its statement."""
    return watched(house.process, monkeypatch)


def watched(process: Process, monkeypatch: pytest.MonkeyPatch) -> list[HotStatement]:
    reads, rows = list[HotStatement](), process.views.rows

    def noted(quick: HotStatement, **values: Any) -> Rows:
        reads.append(quick)
        return rows(quick, **values)

    monkeypatch.setattr(process.views, "rows", noted)
    return reads


def heard(house: House, change: Callable[[], object] = int) -> None:
    """Wait until a process has been told of what another one did; what comes, comes in order."""
    change()
    mark = uuid4()
    with house.process.log.appended.watching(mark) as news:
        tell(house.process, mark.hex)
        assert news.wait(PATIENCE_S)


def tell(process: Process, streams: str) -> None:
    with psycopg.connect(process.settings.database_url, autocommit=True) as connection:
        connection.execute("SELECT pg_notify(%s, %s)", [CHANNEL, streams])


def let_in(house: House, times: int = 1) -> None:
    for _ in range(times):
        assert house.authorize().client_id == house.client_id


def refused(house: House, times: int = 1) -> None:
    for _ in range(times):
        with pytest.raises((OrganizationSuspended, Unauthorized)):
            house.authorize()


def test_a_row_is_read_once_while_it_is_believed(
    house: House, reads: list[HotStatement], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(house.process.log, "find", None)
    let_in(house, 5)
    assert len(reads) == 1
    house.authorize_machine(str(house.organization_id))
    assert len(reads) == 2, "of another client nothing was known"


def test_a_row_is_remembered_no_longer_than_it_is_believed(
    house: House, reads: list[HotStatement]
) -> None:
    let_in(house)
    house.clock.now += authorization.TRUSTED
    let_in(house)
    assert len(reads) == 1, "it is just a second old"
    house.clock.forward(microseconds=1)
    let_in(house)
    assert len(reads) == 2


@pytest.mark.parametrize("hours", [0, -2])
def test_a_clock_that_stands_or_is_set_back_makes_nothing_last(
    house: House, reads: list[HotStatement], monkeypatch: pytest.MonkeyPatch, hours: int
) -> None:
    let_in(house)
    house.clock.forward(hours=hours)
    later = time.monotonic() + authorization.TRUSTED.total_seconds()
    monkeypatch.setattr(authorization.time, "monotonic", lambda: later)
    let_in(house)
    assert len(reads) == 2


def test_a_row_from_the_future_is_remembered_for_a_second_only(
    house: House, reads: list[HotStatement], monkeypatch: pytest.MonkeyPatch
) -> None:
    house.clock.forward(seconds=-0.1)  # It was set back a little: the row is ahead.
    let_in(house, 2)
    assert len(reads) == 1
    later = time.monotonic() + authorization.TRUSTED.total_seconds()
    monkeypatch.setattr(authorization.time, "monotonic", lambda: later)
    let_in(house)
    assert len(reads) == 2


CHANGES: list[Callable[[House], None]] = [
    lambda house: house.move_to("suspended"),
    lambda house: house.revoke(house.client_id),
]


@pytest.mark.parametrize("change", CHANGES, ids=["suspended", "revoked"])
def test_a_commit_of_another_process_counts_as_soon_as_it_is_told(
    house: House, elsewhere: House, change: Callable[[House], None]
) -> None:
    let_in(house)
    heard(house, lambda: change(elsewhere))
    refused(house, 3)  # Nothing was projected: the row is young and says otherwise.
    house.project()
    refused(house)


@pytest.mark.parametrize("change", CHANGES, ids=["suspended", "revoked"])
def test_a_commit_of_this_process_counts_at_once(
    house: House, change: Callable[[House], None]
) -> None:
    let_in(house)
    change(house)
    refused(house, 3)


def test_a_commit_forgets_nobody_else(
    house: House, elsewhere: House, reads: list[HotStatement], monkeypatch: pytest.MonkeyPatch
) -> None:
    now_s = time.monotonic()  # A slow machine takes longer here than a row is believed.
    monkeypatch.setattr(authorization.time, "monotonic", lambda: now_s)
    let_in(house)
    elsewhere.organization_id = elsewhere.process.organization("1.00", "Somebody Else")
    heard(house, lambda: elsewhere.move_to("suspended"))
    heard(house, lambda: elsewhere.revoke(house.machine_id))
    let_in(house)
    assert len(reads) == 1


def test_a_row_that_was_read_before_a_commit_does_not_count_after_it(
    house: House, elsewhere: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = house.process.views.rows

    def read_slowly(quick: HotStatement, **values: Any) -> Rows:
        found = rows(quick, **values)
        heard(house, lambda: elsewhere.move_to("suspended"))
        return found

    with monkeypatch.context() as patch:
        patch.setattr(house.process.views, "rows", read_slowly)
        refused(house)
    refused(house)


def test_a_row_that_was_believed_before_a_commit_is_not_remembered_after_it(
    house: House, elsewhere: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    keep = Memory.save

    def keep_late(*args: Any) -> None:
        heard(house, lambda: elsewhere.move_to("suspended"))
        keep(*args)

    with monkeypatch.context() as patch:
        patch.setattr(Memory, "save", keep_late)
        let_in(house)  # It was decided before.
    refused(house)


def test_what_was_committed_before_somebody_was_met_is_not_hidden(
    installation: Installation, house: House, elsewhere: House
) -> None:
    elsewhere.process = listening(installation.process(house.clock))
    heard(elsewhere, lambda: house.move_to("suspended"))
    let_in(elsewhere)  # The row is younger than a second, and nothing told this process of him.
    house.process.projector.catch_up()
    refused(elsewhere)


def cut_off(process: Process) -> None:
    """End the session that listens."""
    with psycopg.connect(process.settings.database_url, autocommit=True) as connection:
        connection.execute(
            "SELECT pg_terminate_backend(pid, 20000) FROM pg_stat_activity"
            " WHERE query = 'LISTEN log_events' AND datname = current_database()"
        )
    wait_until(lambda: not process.log.appended.hears_others)


def test_while_nobody_listens_each_row_is_read_and_nothing_from_before_comes_back(
    house: House, elsewhere: House, reads: list[HotStatement], monkeypatch: pytest.MonkeyPatch
) -> None:
    let_in(house)
    with monkeypatch.context() as patch:
        patch.setattr(waker, "RETRY_S", 0.01)
        patch.setattr(waker.BoundedConnection, "open", refuse)
        cut_off(house.process)
        let_in(house, 2)
        assert len(reads) == 3
        elsewhere.move_to("suspended")
    wait_until(lambda: house.process.log.appended.hears_others)
    refused(house)


def refuse(*_: object, **__: object) -> None:
    raise psycopg.OperationalError


def test_a_commit_of_too_many_streams_forgets_everybody(
    house: House, reads: list[HotStatement]
) -> None:
    let_in(house)
    heard(house, lambda: tell(house.process, ""))
    let_in(house)
    assert len(reads) == 2


def test_a_bounded_number_is_remembered(
    house: House, reads: list[HotStatement], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(authorization, "KNOWN_MAX", 2)
    house.move_to("suspended")
    for name in ("First", "Second", "Third"):
        made = house.process.organization("1.00", name)
        house.authorize_machine(str(made))
    before = len(reads)
    refused(house)  # The row is young, and it was known to be outdated.
    assert len(reads) == before + 1, "it was forgotten for somebody newer"


@pytest.mark.parametrize("change", CHANGES, ids=["suspended", "revoked"])
def test_with_deaf_listeners_every_process_refuses_within_a_second(
    installation: Installation, change: Callable[[House], None]
) -> None:
    owner = House(installation.process(), SetClock())
    with Relay(installation.environment["DATABASE_URL"], 5432) as relay:
        doors = [door(owner, installation.process(), relay.url) for _ in range(3)]
        projecting = installation.process()
        follower = Follower("projector", projecting.projector.step, projecting.log.appended)
        with running(follower):
            for each in doors:
                wait_until(partial(is_remembered, each))
            relay.deafen()
            change(owner)
            committed_s, open_doors = time.monotonic(), {*doors}
            while open_doors:
                for each in [*open_doors]:
                    asked_s = time.monotonic()
                    if is_refused(each):
                        open_doors.discard(each)
                    else:
                        assert asked_s <= committed_s + authorization.TRUSTED.total_seconds()
            assert all(each.process.log.appended.hears_others for each in doors), "so they think"


def door(owner: House, process: Process, way: str) -> House:
    """Return the same house as a process sees it that listens by some way."""
    process.waker = PostgresWaker(process.log.appended, conninfo(way), CHANNEL)
    seen = object.__new__(House)
    seen.__dict__.update(owner.__dict__, process=listening(process))
    return seen


@contextmanager
def running(follower: Follower) -> Iterator[None]:
    stop = Event()
    thread = Thread(target=follower.run, args=[stop])
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


def is_remembered(house: House) -> bool:
    """Let the client in; tell whether no row was read for it."""
    with pytest.MonkeyPatch.context() as patch:
        reads = watched(house.process, patch)
        let_in(house)
    return not reads


def is_refused(house: House) -> bool:
    try:
        let_in(house)
    except (OrganizationSuspended, Unauthorized):
        return True
    return False
