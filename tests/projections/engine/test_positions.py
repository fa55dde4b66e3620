"""A position moves only from where it was read."""

from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime
from threading import Thread

import pytest
from msgspec.structs import replace
from sqlalchemy import text

from domain.accounts.organization import Organization
from domain.log.log import EventRef
from projections.engine import positions
from projections.engine.positions import Fenced
from tests.installation import Process, postgresql_only, wait_until
from tests.projections.histories import leave_out
from tests.projections.looking import all_lags, failures, place_of, register

pytestmark = pytest.mark.each_database

NOON = datetime(2026, 3, 1, 12, 0, 0, 123_456, tzinfo=UTC)


def test_a_position_that_somebody_else_has_moved_cannot_be_moved(process: Process) -> None:
    register(process, 3)
    first, second, third = (each.ref for each in process.log.read(0, 3))
    seen = place_of(process, "wallets")
    with process.views.writing() as connection:
        process.positions.advance(connection, [seen], second)
    for old, last in ((0, third), (1, third), (third.position, first)):
        with pytest.raises(Fenced), process.views.writing() as connection:
            process.positions.advance(connection, [replace(seen, position=old)], last)
    assert place_of(process, "wallets").position == second.position


def test_a_move_forgets_an_old_failure(process: Process) -> None:
    register(process, 1)
    (first,) = process.log.read(0, 1)
    with process.views.writing() as connection:
        process.positions.fail(connection, [place_of(process, "wallets")], "a bug", NOON)
    assert failures(process) == {"wallets": "a bug"}
    assert place_of(process, "wallets").failed_at == NOON
    with process.views.writing() as connection:
        process.positions.advance(
            connection, [place_of(process, "wallets")], first.ref, caught_up_at=NOON
        )
    place = place_of(process, "wallets")
    assert (place.failure, place.failed_at, place.caught_up_at) == (None, None, NOON)


@pytest.fixture
def first(process: Process) -> EventRef:
    """Where the first event of the log stands."""
    register(process, 1)
    return process.log.read(0, 1)[0].ref


@postgresql_only("locks of rows")
def test_who_moves_several_positions_holds_none_while_another_does(
    process: Process, first: EventRef
) -> None:
    """They would lock the rows in different orders, and each would wait for the other."""
    names = ["a", "b", "c"]
    with process.views.writing() as connection:
        for name in names:
            process.positions.start(connection, name, 1, None)
    seen = {name: place_of(process, name) for name in names}

    def look() -> None:
        with process.views.writing() as connection:
            process.positions.caught_up(connection, [seen["c"], seen["b"]], NOON)

    with process.views.writing() as connection:
        process.positions.advance(connection, [seen["b"], seen["a"]], first)
        assert process.positions.get(connection, "a") != seen["a"]  # It is sent by now.
        waiting = Thread(target=look)
        waiting.start()
        wait_until(lambda: is_waited_for(process))
        assert free(process) == ["c"]
    waiting.join()
    assert [place_of(process, name).position for name in names] == [1, 1, 0]
    assert [place_of(process, name).caught_up_at for name in names] == [None, None, NOON]


@pytest.mark.parametrize(("version", "has_moved"), [(2, False), (1, True)])
def test_positions_that_have_become_others_cannot_be_moved(
    process: Process, first: EventRef, version: int, *, has_moved: bool
) -> None:
    """Also where a rebuild for another version has ended at the very same event; none moves."""
    with process.views.writing() as connection:
        process.positions.start(connection, "a", 1, None)
        process.positions.start(connection, "b", 1, None)
    seen = [place_of(process, name) for name in ("a", "b")]
    with process.views.writing() as connection:
        process.positions.start(connection, "b", version, first if has_moved else None)
    with pytest.raises(Fenced), process.views.writing() as connection:
        process.positions.advance(connection, seen, first)
    assert place_of(process, "a").position == 0


@postgresql_only("locks of rows")
@pytest.mark.parametrize("meanwhile", ["a rebuild", "a heartbeat", "nothing"])
def test_who_waits_for_a_position_sees_what_has_become_of_it_meanwhile(
    process: Process, first: EventRef, meanwhile: str
) -> None:
    seen, fenced = [place_of(process, "jobs"), place_of(process, "wallets")], []

    def move() -> None:
        with suppress(Fenced), process.views.writing() as connection:
            process.positions.advance(connection, seen, first)
            return
        fenced.append(True)

    with process.views.writing() as connection:
        process.positions.get(connection, "wallets", locked=True)
        waiting = Thread(target=move)
        waiting.start()
        wait_until(lambda: is_waited_for(process))
        if meanwhile == "a rebuild":
            process.positions.start(connection, "wallets", seen[1].version + 1, None)
        elif meanwhile == "a heartbeat":
            process.positions.caught_up(connection, [seen[1]], NOON)
    waiting.join()
    assert bool(fenced) == (meanwhile == "a rebuild")
    assert place_of(process, "wallets").position == (0 if fenced else 1)
    assert place_of(process, "wallets").caught_up_at == (NOON if "beat" in meanwhile else None)


def is_waited_for(process: Process) -> bool:
    waiting = "SELECT count(*) FROM pg_locks l JOIN pg_stat_activity a USING (pid)"
    here = " WHERE NOT l.granted AND a.datname = current_database()"
    with process.views.reading() as connection:
        return bool(connection.execute(text(waiting + here)).scalar_one())


def free(process: Process) -> Sequence[str]:
    """Return which of three followers nobody holds."""
    skipping = "SELECT name FROM follower_positions WHERE name IN ('a', 'b', 'c') "
    with process.views.writing() as connection:
        return sorted(connection.execute(text(skipping + "FOR UPDATE SKIP LOCKED")).scalars())


def test_a_heartbeat_is_noted_only_for_the_position_that_it_was_seen_at(process: Process) -> None:
    with process.views.writing() as connection:
        process.positions.caught_up(connection, [place_of(process, "wallets")], NOON)
        elsewhere = replace(place_of(process, "jobs"), position=7)
        process.positions.caught_up(connection, [elsewhere], NOON)
    assert place_of(process, "wallets").caught_up_at == NOON
    assert place_of(process, "jobs").caught_up_at is None


def test_the_lag_counts_events_and_not_the_positions_that_a_promotion_has_left_out(
    process: Process, monkeypatch: pytest.MonkeyPatch
) -> None:
    register(process, 3)
    process.projector.catch_up()
    register(process, 1)
    leave_out(process)
    register(process, 2)
    assert {lag.behind for lag in all_lags(process)} == {3}
    monkeypatch.setattr(positions, "LAG_EVENTS_MAX", 2)
    assert {lag.behind for lag in all_lags(process)} == {2}


def test_the_events_of_several_streams_come_in_the_order_of_the_log(process: Process) -> None:
    one, other = register(process, 2)
    for each in (other, one, other):
        organization = process.log.get(Organization, each)
        organization.change_price(organization.version, process.cause())
        process.log.append(organization)
    found = [recorded.event.originator_id for recorded in process.log.streams([other, one])]
    assert found == [one, other, other, one, other]
