"""The clock runs each task at its interval; one that fails does not hold up the others."""

from threading import Event, Thread

import pytest

from tests.installation import PATIENCE_S
from workers import schedule
from workers.schedule import Schedule, Task, run_schedule


def test_a_task_runs_when_its_time_has_come_and_not_before() -> None:
    ran: list[str] = []
    plan = Schedule(
        [
            Task("often", 0, lambda: ran.append("often")),
            Task("late", 3600, lambda: ran.append("late")),
        ]
    )
    plan.tick()
    plan.tick()
    assert ran == ["often", "often"]


def test_a_task_can_begin_at_the_first_tick_and_then_waits_its_time() -> None:
    ran: list[str] = []
    plan = Schedule([Task("at boot", 3600, lambda: ran.append("at boot"), first_s=0)])
    plan.tick()
    plan.tick()
    assert ran == ["at boot"]


def test_a_task_that_fails_is_tried_again_and_fails_alone() -> None:
    ran: list[str] = []

    def fail() -> None:
        ran.append("failing")
        message = "a bug of this task"
        raise RuntimeError(message)

    plan = Schedule([Task("failing", 0, fail), Task("other", 0, lambda: ran.append("other"))])
    plan.tick()
    plan.tick()
    assert ran == ["failing", "other"] * 2


def test_it_ticks_until_it_is_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(schedule, "TICK_S", 0.001)
    ticked, stop = Event(), Event()
    plan = Schedule([Task("tick", 0, ticked.set)])
    thread = Thread(target=run_schedule, args=(stop, plan.tick))
    thread.start()
    assert ticked.wait(PATIENCE_S)
    stop.set()
    thread.join(PATIENCE_S)
    assert not thread.is_alive()
