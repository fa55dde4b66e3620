"""An organization is admitted as often in a minute as its limit says, by all processes together."""

from uuid import UUID, uuid4

import pytest
from sqlalchemy import text

from app.bootstrap.container import Container
from app.security.rate_limits import AHEAD_OF, RateLimits
from domain.blocking import WouldBlock, forbid_blocking
from tests.domain.asking import all_at_once
from tests.installation import Process, SetClock, on_sqlite, timed

ONE = uuid4()


class Counting:
    """Counts the statements of a process."""

    def __init__(self, process: Process) -> None:
        self._counters, self.statements = process.counters, 0

    def count_requests(
        self, organization_id: UUID, minute: int, wanted: int
    ) -> tuple[int, int] | None:
        self.statements += 1
        return self._counters.count_requests(organization_id, minute, wanted)


@pytest.fixture
def clock() -> SetClock:
    return SetClock()


process = other = timed


def admitted(process: Container, per_minute: int, tries: int, who: UUID = ONE) -> int:
    return sum(not process.rate_limits.admit(who, per_minute).is_over for _ in range(tries))


def test_so_many_are_admitted_and_no_more_until_the_minute_ends(
    process: Process, clock: SetClock
) -> None:
    clock.forward(seconds=18)
    told = [process.rate_limits.admit(ONE, 3) for _ in range(4)]
    assert [each.is_over for each in told] == [False, False, False, True]
    assert [each.left for each in told] == [2, 1, 0, 0]
    assert {each.resets_s for each in told} == {42}
    assert told[0].headers() == {
        "RateLimit-Policy": '"default";q=3;w=60',
        "RateLimit": '"default";r=2;t=42',
    }
    clock.forward(seconds=41.5)
    assert process.rate_limits.admit(ONE, 3).resets_s == 1
    clock.forward(seconds=0.5)
    assert admitted(process, 3, 4) == 3


@pytest.mark.each_database
def test_processes_share_it_and_organizations_do_not(process: Process, other: Process) -> None:
    for _ in range(3):
        assert admitted(process, 7, 1) + admitted(other, 7, 1) == 2
    assert admitted(process, 7, 5) + admitted(other, 7, 5) == 1
    assert admitted(process, 2, 5, uuid4()) == 2


@pytest.mark.each_database
@pytest.mark.parametrize("per_minute", [on_sqlite(1), 20, on_sqlite(1_000)])
def test_many_threads_of_two_processes_never_exceed_it(
    process: Process, other: Process, per_minute: int
) -> None:
    each = per_minute // 25 + 1
    given = all_at_once(50, lambda n: admitted((process, other)[n % 2], per_minute, each))
    found = sum(n for n in given if isinstance(n, int))
    # What one process has counted ahead is not lost while both go on.
    assert found == per_minute


def test_a_high_limit_costs_few_statements_and_beyond_it_none(process: Process) -> None:
    counting = Counting(process)
    limits = RateLimits(counting, process.clock)
    assert sum(not limits.admit(ONE, 6_000).is_over for _ in range(3_000)) == 3_000
    assert counting.statements <= AHEAD_OF
    while not limits.admit(ONE, 6_000).is_over:
        pass
    known = counting.statements
    assert known < 330, "one for eighteen requests"
    for _ in range(50):
        assert limits.admit(ONE, 6_000).is_over
    assert counting.statements == known


def test_another_limit_counts_at_once_with_what_was_sent(process: Process, other: Process) -> None:
    assert admitted(process, 3, 5) == 3
    assert admitted(process, 5, 5) == 2
    assert admitted(other, 4, 5) == 0
    process.rate_limits.give_back(ONE)
    assert admitted(process, 5, 2) == 1


def test_a_process_that_is_in_the_next_minute_already_begins_it_for_both(
    process: Process, other: Process, clock: SetClock
) -> None:
    ahead = SetClock(clock.now)
    vars(other)["rate_limits"] = RateLimits(other.counters, ahead)
    clock.forward(seconds=59.9)
    ahead.now = clock.now
    ahead.forward(seconds=0.2)
    assert admitted(other, 3, 2) == 2
    assert admitted(process, 3, 5) == 1


def test_a_clock_that_was_set_back_begins_a_minute(process: Process, clock: SetClock) -> None:
    assert admitted(process, 2, 3) == 2
    clock.forward(hours=-1)
    assert admitted(process, 2, 3) == 2


def test_while_nobody_can_count_requests_pass(process: Process) -> None:
    with process.stores.writing() as connection:
        connection.execute(text("DROP TABLE counters"))
    assert admitted(process, 2, 20) == 20


def test_a_thread_that_must_not_wait_takes_only_what_was_counted_ahead(process: Process) -> None:
    def admit() -> None:
        process.rate_limits.admit(ONE, 4 * AHEAD_OF)

    with forbid_blocking(), pytest.raises(WouldBlock):
        admit()
    admit()
    with forbid_blocking():
        admit()
        for _ in range(2):
            admit()
        with pytest.raises(WouldBlock):
            admit()
