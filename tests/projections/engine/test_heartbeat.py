"""When a read model last saw that nothing was left to read: what authorization trusts."""

from datetime import datetime, timedelta

import pytest

from app.security.authorization import TRUSTED
from projections.engine.consumer import HEARTBEAT
from projections.engine.follower import IDLE_S
from projections.engine.projector import Projector
from projections.engine.read_model import BATCH_EVENTS_MAX
from tests.installation import Process, SetClock
from tests.projections.looking import FragileWallets, all_lags, place_of, projector_of, register


@pytest.fixture
def projector(process: Process, clock: SetClock) -> Projector:
    assert process.clock is clock
    return projector_of(process, *process.models)


def caught_up_at(process: Process, name: str = "organizations") -> datetime | None:
    return place_of(process, name).caught_up_at


@pytest.mark.each_database
def test_it_moves_while_nothing_happens(
    process: Process, projector: Projector, clock: SetClock
) -> None:
    projector.step()
    assert {lag.caught_up_at for lag in all_lags(process)} == {clock.now}
    clock.now += HEARTBEAT
    projector.step()
    assert {lag.caught_up_at for lag in all_lags(process)} == {clock.now}


def test_it_does_not_write_at_every_look(
    process: Process, projector: Projector, clock: SetClock
) -> None:
    projector.step()
    before = caught_up_at(process)
    clock.now += HEARTBEAT / 2
    projector.step()
    assert caught_up_at(process) == before


def test_it_stands_still_while_more_waits_than_one_batch(
    process: Process, projector: Projector, clock: SetClock
) -> None:
    projector.step()
    started = clock.now
    register(process, 2 * BATCH_EVENTS_MAX + 1)
    for _ in range(2):
        clock.forward(seconds=10)
        projector.step()
        assert caught_up_at(process) == started
    projector.step()
    assert caught_up_at(process) == clock.now


def test_it_stands_still_for_a_model_that_has_stopped(
    process: Process, clock: SetClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    fragile = FragileWallets()
    projector = projector_of(process, *process.models[:2], fragile)
    projector.step()
    started = clock.now
    position = process.log.head() + 1
    monkeypatch.setattr(FragileWallets, "broken_at", position)
    register(process, 1)
    for _ in range(3):
        clock.forward(seconds=10)
        projector.step()
    assert caught_up_at(process, "wallets") == started
    assert caught_up_at(process) == clock.now


def test_it_moves_on_after_the_clock_was_set_back(
    process: Process, projector: Projector, clock: SetClock
) -> None:
    projector.step()
    clock.forward(hours=-2)
    projector.step()
    assert caught_up_at(process) == clock.now


def test_two_looks_of_an_idle_projector_are_within_what_authorization_trusts() -> None:
    assert 2 * max(HEARTBEAT, timedelta(seconds=IDLE_S)) < TRUSTED
