"""A follower takes steps while there are any, then waits; what a step raises, it survives."""

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Event, Thread

import pytest

from domain.errors import ServiceUnavailable
from domain.log.signal import Signal
from projections.engine import complaint, follower
from projections.engine.consumer import PACE_S
from projections.engine.follower import Follower, LockedStep, Step
from tests.installation import PATIENCE_S, wait_until
from tests.log_lines import records_of, said_by

SAYS = complaint.__name__


class NoisyWaker(Signal):
    """The real signal, which remembers how often somebody waited."""

    def __init__(self) -> None:
        super().__init__()
        self.waits = 0

    def wait(self, seen: int, timeout_s: float) -> bool:
        self.waits += 1
        return super().wait(seen, timeout_s)


@contextmanager
def following(
    step: Step, waker: Signal, batch_max: int = 1, pace_s: float = PACE_S
) -> Iterator[None]:
    stop = Event()
    follower = Follower("test", step, waker, pace_s, batch_max)
    thread = Thread(target=lambda: follower.run(stop))
    thread.start()
    try:
        yield
    finally:
        stop.set()
        waker.call()
        thread.join(PATIENCE_S)
        assert not thread.is_alive()


def test_after_a_batch_that_is_not_full_it_waits_to_be_woken() -> None:
    waker, waited = NoisyWaker(), list[int]()

    def step() -> int:
        waited.append(waker.waits)
        waker.call()
        return 9 if len(waited) == 1 else 10

    with following(step, waker, batch_max=10):
        wait_until(lambda: len(waited) > 3)
    assert waited[:4] == [0, 1, 1, 1], "it waits once, and goes on at once where there is more"


def test_trouble_that_lasts_is_said_once_and_so_is_its_end(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    caplog.set_level("INFO")
    monkeypatch.setattr(follower, "BACK_OFF_MAX_S", 0.001)
    monkeypatch.setattr(follower, "BACK_OFF_MIN_S", 0.001)
    faults: list[Exception] = [outage("no route"), outage("too many clients")] * 9
    done = Event()

    def step() -> int:
        if faults:
            raise faults.pop(0)
        done.set()
        return 0

    with following(step, Signal()):
        assert done.wait(PATIENCE_S)
        wait_until(lambda: len(said_by(caplog, SAYS)) == 3)
    assert said_by(caplog, SAYS) == [
        "follower test failed: ValueError: no route",
        "follower test failed: ValueError: too many clients",
        "follower test works again",
    ]
    assert [each.exc_info for each in records_of(caplog, SAYS)] == [None] * 3


def outage(words: str) -> Exception:
    error = ServiceUnavailable()
    error.__cause__ = ValueError(f"{words}\nmore words")
    return error


def test_an_error_that_nobody_expected_tells_where_it_was(caplog: pytest.LogCaptureFixture) -> None:
    faults = [ValueError("a bug")]

    def step() -> int:
        if faults:
            raise faults.pop()
        return 0

    with following(step, Signal()):
        wait_until(lambda: len(said_by(caplog, SAYS)) == 1)
    assert records_of(caplog, SAYS)[0].exc_info is not None


def test_it_stops_in_the_midst_of_a_long_wait_and_of_endless_work() -> None:
    for more in (True, False):
        steps: list[bool] = []

        def step(answer: bool = more, taken: list[bool] = steps) -> bool:  # noqa: FBT001  # Of a step.
            taken.append(answer)
            return answer

        with following(step, Signal()):
            wait_until(lambda taken=steps: bool(taken))  # type: ignore[misc]  # bound to this turn


def test_a_copy_at_rest_takes_no_step_and_leaves_its_lock_to_others() -> None:
    rests = [False, True, False]
    calls: list[str] = []

    class Noted:
        def acquire(self) -> bool:
            calls.append("hold")
            return True

        def release(self) -> None:
            calls.append("release")

    step = LockedStep(Noted(), lambda: len(calls), lambda: rests.pop(0))
    assert [step(), step(), step()] == [1, None, 3]
    assert calls == ["hold", "release", "hold"]


def test_a_copy_that_stands_by_listens_to_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(follower, "IDLE_S", 0.001)
    waker, steps = NoisyWaker(), list[int]()
    with following(lambda: steps.append(1), waker):
        wait_until(lambda: len(steps) > 3)
        assert waker.waits == 0
