"""All processes together keep to the pace that a provider allows."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest
from sqlalchemy import text

from tests.installation import Installation, Process, SetClock

PER_S, BURST = 10.0, 3


@pytest.fixture
def clock() -> SetClock:
    return SetClock()


@pytest.fixture
def process(installation: Installation, clock: SetClock) -> Process:
    return installation.process(clock)


@pytest.fixture
def turn(process: Process) -> Callable[..., float | None]:
    return lambda within_s=60.0: process.paces.turn("one", PER_S, BURST, within_s)


def test_a_burst_goes_at_once_and_the_others_one_after_the_other(
    turn: Callable[..., float | None],
) -> None:
    assert [turn() for _ in range(6)] == pytest.approx([0, 0, 0, 0.1, 0.2, 0.3])


def test_a_pause_earns_a_burst_and_no_more(
    turn: Callable[..., float | None], clock: SetClock
) -> None:
    turn()
    clock.forward(seconds=60)
    assert [turn() for _ in range(4)] == pytest.approx([0, 0, 0, 0.1])


def test_who_cannot_wait_takes_no_turn(turn: Callable[..., float | None]) -> None:
    for _ in range(4):
        turn()
    assert [turn(0.15) for _ in range(3)] == [None, None, None]
    assert turn(0.25) == pytest.approx(0.2)


def test_providers_do_not_share_a_pace(process: Process) -> None:
    assert [process.paces.turn(each, 1, 1, 0.1) for each in "abab"] == [0, 0, None, None]


def test_a_clock_that_was_set_back_holds_nobody(
    turn: Callable[..., float | None], clock: SetClock
) -> None:
    turn()
    clock.forward(hours=-1)
    assert turn(0.0) == 0


def test_processes_share_the_pace(installation: Installation, clock: SetClock) -> None:
    shares = [installation.process(clock).paces for _ in range(2)]
    with ThreadPoolExecutor(8) as threads:
        waits = list(threads.map(lambda n: shares[n % 2].turn("one", 100, 1, 60), range(40)))
    assert sorted(waits) == pytest.approx([n / 100 for n in range(40)])


def test_without_the_store_calls_go_on(process: Process) -> None:
    with process.stores.writing() as connection:
        connection.execute(text("DROP TABLE provider_paces"))
    assert process.paces.turn("one", 1, 1, 0.1) == 0.0
    assert process.paces.turn("one", 1, 1, 0.1) == 0.0
