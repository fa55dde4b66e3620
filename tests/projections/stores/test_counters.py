"""Counters and claims are shared by all processes; what is over is forgotten, nothing is lost."""

from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from threading import Barrier
from typing import TypeVar
from uuid import UUID, uuid4

import pytest

from app.security.throttle import FAILURES_MAX
from domain.errors import NotPossible
from projections.engine.database import to_micros
from tests.installation import PATIENCE_S, Installation, Process, SetClock, timed

pytestmark = pytest.mark.each_database

KEY = UUID("3f1f7a5e-8c6d-4f0c-9c3e-2a4b8f1d7e60")
TERM = timedelta(seconds=30)
SUBJECT, ADDRESS = "cl_1 192.0.2.1", "192.0.2.1"
NUMBER = "+15005550004"
PER_S, BURST = 10.0, 3
THREADS = 12
T = TypeVar("T")
process = timed


def fail(process: Process, times: int, subject: str = SUBJECT) -> None:
    for _ in range(times):
        process.throttle.failed(subject, ADDRESS)


def together(
    installation: Installation, clock: SetClock, count: int, ask: Callable[[Process], T]
) -> list[T]:
    """Ask so often at once, in three processes; return the answers."""
    processes = [installation.process(clock) for _ in range(3)]
    ready = Barrier(THREADS)

    def begin(number: int) -> list[T]:
        ready.wait(PATIENCE_S)
        return [ask(processes[number % 3]) for _ in range(count // THREADS)]

    with ThreadPoolExecutor(THREADS) as pool:
        return [answer for answers in pool.map(begin, range(THREADS)) for answer in answers]


# Leases.


def test_a_free_key_is_claimed_and_a_held_one_names_its_holder(
    installation: Installation, process: Process, clock: SetClock
) -> None:
    for _ in range(2):  # The reply to the first claim may have been lost.
        assert process.counters.acquire(KEY, "first", clock() + TERM) is None
    elsewhere = installation.process(clock)
    for counters in (process.counters, elsewhere.counters):
        assert counters.acquire(KEY, "second", clock() + TERM) == "first"
    assert process.counters.acquire(uuid4(), "second", clock() + TERM) is None


def test_a_lease_lapses_and_only_its_holder_gives_it_back(
    process: Process, clock: SetClock
) -> None:
    process.counters.acquire(KEY, "first", clock() + TERM)
    clock.forward(seconds=29.999999)
    assert process.counters.acquire(KEY, "second", clock() + TERM) == "first"
    clock.forward(microseconds=1)
    assert process.counters.acquire(KEY, "second", clock() + TERM) is None
    process.counters.release(KEY, "first")
    assert process.counters.acquire(KEY, "third", clock() + TERM) == "second"
    process.counters.release(KEY, "second")
    assert process.counters.acquire(KEY, "third", clock() + TERM) is None


def test_of_many_who_claim_at_once_one_gets_the_lease(
    installation: Installation, clock: SetClock
) -> None:
    def claim(process: Process) -> bool:
        return process.counters.acquire(KEY, uuid4().hex, clock() + TERM) is None

    assert Counter(together(installation, clock, THREADS, claim)) == {True: 1, False: THREADS - 1}


# Wrong secrets.


def test_nobody_waits_before_the_last_failure_that_is_allowed(
    installation: Installation, process: Process, clock: SetClock
) -> None:
    fail(process, FAILURES_MAX - 1)
    assert process.throttle.wait_s(SUBJECT, ADDRESS) == 0
    fail(process, 1)
    elsewhere = installation.process(clock).throttle
    assert elsewhere.wait_s(SUBJECT, ADDRESS) == 60
    assert elsewhere.wait_s("cl_1 192.0.2.2", "192.0.2.2") == 0


@pytest.mark.any_database
def test_the_wait_is_to_the_end_of_the_window_in_whole_seconds(
    process: Process, clock: SetClock
) -> None:
    fail(process, FAILURES_MAX)
    for elapsed_s, wait_s in ((0, 60), (0.5, 60), (1, 59), (59.000001, 1), (59.999999, 1), (60, 0)):
        clock.forward(seconds=elapsed_s)
        assert process.throttle.wait_s(SUBJECT, ADDRESS) == wait_s
        clock.forward(seconds=-elapsed_s)


@pytest.mark.any_database
def test_a_window_begins_with_its_first_failure(process: Process, clock: SetClock) -> None:
    fail(process, FAILURES_MAX - 1)
    clock.forward(seconds=60)
    fail(process, FAILURES_MAX - 1)
    assert process.throttle.wait_s(SUBJECT, ADDRESS) == 0
    fail(process, 1)
    assert process.throttle.wait_s(SUBJECT, ADDRESS) == 60


# Attempts at sandbox numbers; their counts never lapse.


def test_no_two_attempts_get_the_same_count(
    installation: Installation, process: Process, clock: SetClock
) -> None:
    mine, other = uuid4(), uuid4()
    count = process.counters.count_attempt
    assert [count(other, NUMBER), count(mine, "+15005550002")] == [1, 1]
    found = together(installation, clock, 36, lambda it: it.counters.count_attempt(mine, NUMBER))
    assert sorted(found) == [*range(1, 37)]
    clock.forward(days=365)
    assert process.counters.forget_lapsed() == 0
    assert count(mine, NUMBER) == 37


# Failures that an organization of a sandbox scripts, and how far its time is ahead.


def of(*names: str) -> Callable[[str, str], bool]:
    return lambda name, _: name in names


def test_as_many_attempts_fail_as_were_scripted_and_nobody_elses(
    installation: Installation, process: Process, clock: SetClock
) -> None:
    mine, other = uuid4(), uuid4()
    process.counters.script_failure(mine, "lookup", "slow", 5, None)
    assert process.counters.next_failure(other, of("lookup")) is None
    assert process.counters.next_failure(mine, of("purchase")) is None
    found = together(
        installation, clock, 36, lambda it: it.counters.next_failure(mine, of("lookup"))
    )
    assert Counter(found) == {"slow": 5, None: 31}
    assert process.counters.scripted_failures(mine) == []


def test_a_script_ends_in_time_or_by_the_next_one(process: Process, clock: SetClock) -> None:
    counters, until = process.counters, clock() + TERM
    counters.script_failure(KEY, "lookup", "slow", None, until)
    assert [counters.next_failure(KEY, of("lookup")) for _ in range(3)] == ["slow"] * 3
    assert counters.scripted_failures(KEY) == [("lookup", "slow", None, until)]
    assert counters.forget_lapsed() == 0
    clock.forward(seconds=30)
    assert counters.next_failure(KEY, of("lookup")) is None
    assert counters.scripted_failures(KEY) == []
    counters.script_failure(KEY, "lookup", "malformed", 2, clock() + TERM)
    assert counters.next_failure(KEY, of("lookup")) == "malformed"
    counters.script_failure(KEY, "lookup", None, 1, None)
    assert counters.next_failure(KEY, of("lookup")) is None


@pytest.mark.any_database
def test_what_is_said_of_fewer_attempts_comes_first(process: Process) -> None:
    counters, fewer, fewest = process.counters, "lookup key_prefix ci-", "lookup key_prefix ci-1"
    for name, how in (("lookup", "slow"), (fewest, "no_data"), (fewer, "malformed")):
        counters.script_failure(KEY, name, how, 1, None)
    all_of_them = of("lookup", fewer, fewest)
    found = [counters.next_failure(KEY, all_of_them) for _ in range(4)]
    assert found == ["no_data", "malformed", "slow", None]


def test_the_time_of_one_moves_beside_that_of_all_and_within_bounds(
    installation: Installation, process: Process, clock: SetClock
) -> None:
    mine, other, year = (uuid4(),), (uuid4(),), timedelta(days=365)
    link = (*mine, uuid4())
    counters = process.counters
    together(installation, clock, 12, lambda it: it.counters.advance_simulated(TERM, mine))
    assert counters.advance_simulated(TERM) == TERM
    assert counters.advance_simulated(2 * TERM, link) == 15 * TERM
    ahead = [counters.simulated_ahead(each) for each in (mine, link, (*mine, uuid4()), other, ())]
    assert ahead == [13 * TERM, 15 * TERM, 13 * TERM, TERM, TERM]
    for _ in range(9):
        counters.advance_simulated(year, mine)
    before = counters.simulated_ahead(mine)
    with pytest.raises(NotPossible):
        counters.advance_simulated(year, mine)
    assert counters.simulated_ahead(mine) == before
    counters.reset_sandbox(mine[0])
    assert [counters.simulated_ahead(each) for each in (mine, link, other)] == [TERM] * 3


# Paces of providers.


@pytest.fixture
def turn(process: Process) -> Callable[..., float | None]:
    return lambda within_s=60.0: process.counters.reserve("one", PER_S, BURST, within_s)


def test_a_burst_goes_at_once_and_the_others_one_after_the_other(
    turn: Callable[..., float | None], clock: SetClock, process: Process
) -> None:
    assert [turn() for _ in range(6)] == pytest.approx([0, 0, 0, 0.1, 0.2, 0.3])
    assert process.counters.reserve("other", 1, 1, 0.1) == 0
    clock.forward(seconds=60)
    process.counters.forget_lapsed()
    assert [turn() for _ in range(4)] == pytest.approx([0, 0, 0, 0.1])


@pytest.mark.any_database
def test_who_cannot_wait_takes_no_turn(turn: Callable[..., float | None]) -> None:
    for _ in range(4):
        turn()
    assert [turn(0.15) for _ in range(3)] == [None, None, None]
    assert turn(0.25) == pytest.approx(0.2)


def test_processes_share_the_pace(installation: Installation, clock: SetClock) -> None:
    waits = together(installation, clock, 36, lambda it: it.counters.reserve("one", 100, 1, 60))
    assert sorted(wait_s or 0.0 for wait_s in waits) == pytest.approx([n / 100 for n in range(36)])


# All of them.


@pytest.mark.any_database
def test_a_clock_that_was_set_back_holds_nobody(
    process: Process, clock: SetClock, turn: Callable[..., float | None]
) -> None:
    process.counters.acquire(KEY, "first", clock() + TERM)
    fail(process, FAILURES_MAX)
    turn()
    clock.forward(hours=-2)
    assert process.counters.acquire(KEY, "second", clock() + TERM) is None
    assert process.throttle.wait_s(SUBJECT, ADDRESS) == 0
    assert turn(0.0) == 0
    fail(process, FAILURES_MAX)
    assert process.throttle.wait_s(SUBJECT, ADDRESS) == 60


def test_no_count_is_lost_among_processes(installation: Installation, clock: SetClock) -> None:
    together(installation, clock, 36, lambda it: it.throttle.failed(SUBJECT, ADDRESS))
    assert installation.process(clock).counters.failures([ADDRESS])[ADDRESS][0] == 36


def test_what_has_lapsed_is_forgotten_and_nothing_else(process: Process, clock: SetClock) -> None:
    process.counters.acquire(uuid4(), "lapsed", clock() + TERM)
    process.counters.count_requests(KEY, to_micros(clock()) // 60_000_000, 1)
    fail(process, 1, "over")
    process.counters.advance_simulated(TERM)
    clock.forward(seconds=59)
    process.counters.acquire(KEY, "held", clock() + TERM)
    fail(process, 1, "running")
    clock.forward(seconds=1)
    assert process.counters.forget_lapsed() == 4  # The lease, the minute, the client, its address.
    assert process.counters.forget_lapsed() == 0
    assert process.counters.acquire(KEY, "mine", clock() + TERM) == "held"
    assert process.counters.simulated_ahead() == TERM
