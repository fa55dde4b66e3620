"""A lease has one holder at a time, in all processes, until it is given back or lapses."""

from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from threading import Barrier
from uuid import UUID, uuid4

import pytest

from tests.installation import PATIENCE_S, Installation, Process, SetClock

KEY = UUID("3f1f7a5e-8c6d-4f0c-9c3e-2a4b8f1d7e60")
TERM = timedelta(seconds=30)


@pytest.fixture
def clock() -> SetClock:
    return SetClock()


@pytest.fixture
def process(installation: Installation, clock: SetClock) -> Process:
    return installation.process(clock)


def test_a_free_key_is_claimed_and_a_held_one_names_what_runs(
    installation: Installation, process: Process, clock: SetClock
) -> None:
    assert process.leases.acquire(KEY, uuid4(), "first", clock() + TERM) is None
    elsewhere = installation.process(clock)
    for leases in (process.leases, elsewhere.leases):
        assert leases.acquire(KEY, uuid4(), "second", clock() + TERM) == "first"
    assert process.leases.acquire(uuid4(), uuid4(), "other key", clock() + TERM) is None


def test_who_lost_the_reply_to_a_claim_may_claim_again(process: Process, clock: SetClock) -> None:
    holder = uuid4()
    for _ in range(2):
        assert process.leases.acquire(KEY, holder, "first", clock() + TERM) is None
    assert process.leases.acquire(KEY, uuid4(), "second", clock() + TERM) == "first"


def test_a_lease_lapses_after_its_term(process: Process, clock: SetClock) -> None:
    process.leases.acquire(KEY, uuid4(), "first", clock() + TERM)
    clock.now += TERM
    assert process.leases.acquire(KEY, uuid4(), "second", clock() + TERM) == "first"
    clock.forward(microseconds=1)
    assert process.leases.acquire(KEY, uuid4(), "second", clock() + TERM) is None
    assert process.leases.acquire(KEY, uuid4(), "third", clock() + TERM) == "second"


def test_the_lease_of_somebody_else_cannot_be_given_back(process: Process, clock: SetClock) -> None:
    late, present = uuid4(), uuid4()
    process.leases.acquire(KEY, late, "first", clock() + TERM)
    clock.forward(seconds=31)
    process.leases.acquire(KEY, present, "second", clock() + TERM)
    process.leases.release(KEY, late)
    process.leases.release(uuid4(), late)
    assert process.leases.acquire(KEY, uuid4(), "third", clock() + TERM) == "second"


def test_of_many_who_claim_at_once_one_gets_the_lease(
    installation: Installation, clock: SetClock
) -> None:
    processes = [installation.process(clock) for _ in range(3)]
    together = Barrier(12)

    def claim(number: int) -> str | None:
        together.wait(PATIENCE_S)
        leases = processes[number % 3].leases
        return leases.acquire(KEY, uuid4(), "the same request", clock() + TERM)

    with ThreadPoolExecutor(12) as pool:
        answers = Counter(pool.map(claim, range(12)))
    assert answers == {None: 1, "the same request": 11}


def test_claims_that_lapsed_are_forgotten_and_no_others(process: Process, clock: SetClock) -> None:
    process.leases.acquire(uuid4(), uuid4(), "lapsed", clock() + TERM)
    process.leases.acquire(uuid4(), uuid4(), "lapsed", clock() + TERM)
    clock.forward(seconds=31)
    process.leases.acquire(KEY, uuid4(), "held", clock() + TERM)
    assert process.leases.forget_lapsed() == 2
    assert process.leases.forget_lapsed() == 0
    assert process.leases.acquire(KEY, uuid4(), "mine", clock() + TERM) == "held"


def test_a_lease_from_before_the_clock_was_set_back_has_lapsed(
    process: Process, clock: SetClock
) -> None:
    process.leases.acquire(KEY, uuid4(), "first", clock() + TERM)
    clock.forward(hours=-2)
    assert process.leases.acquire(KEY, uuid4(), "second", clock() + TERM) is None
