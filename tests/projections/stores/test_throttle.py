"""Wrong secrets are counted in windows; a caller with too many has to wait."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from projections.stores.throttle import ADDRESS_FAILURES_MAX, FAILURES_MAX
from tests.installation import Installation, Process, SetClock

SUBJECT = "cl_1 192.0.2.1"
ADDRESS = "192.0.2.1"


@pytest.fixture
def clock() -> SetClock:
    return SetClock()


@pytest.fixture
def process(installation: Installation, clock: SetClock) -> Process:
    return installation.process(clock)


def fail(process: Process, times: int, subject: str = SUBJECT) -> None:
    for _ in range(times):
        process.throttle.failed(subject, ADDRESS)


def test_nobody_waits_before_the_last_failure_that_is_allowed(process: Process) -> None:
    assert process.throttle.wait_s(SUBJECT, ADDRESS) == 0
    fail(process, FAILURES_MAX - 1)
    assert process.throttle.wait_s(SUBJECT, ADDRESS) == 0
    fail(process, 1)
    assert process.throttle.wait_s(SUBJECT, ADDRESS) == 60


def test_the_wait_is_to_the_end_of_the_window_in_whole_seconds(
    process: Process, clock: SetClock
) -> None:
    fail(process, FAILURES_MAX)
    for elapsed_s, wait_s in ((0, 60), (0.5, 60), (1, 59), (59.000001, 1), (59.999999, 1)):
        clock.forward(seconds=elapsed_s)
        assert process.throttle.wait_s(SUBJECT, ADDRESS) == wait_s
        clock.forward(seconds=-elapsed_s)
    clock.forward(seconds=60)
    assert process.throttle.wait_s(SUBJECT, ADDRESS) == 0


def test_a_window_begins_with_its_first_failure(process: Process, clock: SetClock) -> None:
    fail(process, FAILURES_MAX - 1)
    clock.forward(seconds=60)
    fail(process, FAILURES_MAX - 1)
    assert process.throttle.wait_s(SUBJECT, ADDRESS) == 0
    fail(process, 1)
    assert process.throttle.wait_s(SUBJECT, ADDRESS) == 60


def test_subjects_wait_for_their_own_failures_in_every_process(
    installation: Installation, process: Process, clock: SetClock
) -> None:
    fail(process, FAILURES_MAX)
    elsewhere = installation.process(clock)
    assert elsewhere.throttle.wait_s(SUBJECT, ADDRESS) == 60
    assert elsewhere.throttle.wait_s("cl_1 192.0.2.2", "192.0.2.2") == 0


def test_no_failure_is_lost_among_processes(installation: Installation, clock: SetClock) -> None:
    processes = [installation.process(clock) for _ in range(FAILURES_MAX)]
    with ThreadPoolExecutor(FAILURES_MAX) as pool:
        list(pool.map(lambda each: fail(each, 1), processes))
    assert processes[0].throttle.wait_s(SUBJECT, ADDRESS) == 60


def test_windows_that_are_over_are_forgotten(process: Process, clock: SetClock) -> None:
    fail(process, FAILURES_MAX, "over")
    clock.forward(seconds=30)
    fail(process, FAILURES_MAX, "running")
    clock.forward(seconds=30)
    assert process.throttle.forget_lapsed() == 2  # Its address too.
    assert process.throttle.forget_lapsed() == 0
    assert process.throttle.wait_s("running", ADDRESS) == 30


def test_an_address_waits_whatever_clients_it_has_named(process: Process, clock: SetClock) -> None:
    for name in range(ADDRESS_FAILURES_MAX):
        assert process.throttle.wait_s(f"cl_{name}", ADDRESS) == 0
        fail(process, 1, f"cl_{name}")
    assert process.throttle.wait_s("cl_another", ADDRESS) == 60
    assert process.throttle.wait_s("cl_another", "192.0.2.2") == 0
    clock.forward(seconds=60)
    assert process.throttle.wait_s("cl_another", ADDRESS) == 0
    assert process.throttle.forget_lapsed() == ADDRESS_FAILURES_MAX + 1
