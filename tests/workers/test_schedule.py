"""The clock runs each task at its interval; one that fails does not hold up the others."""

from workers.schedule import Schedule, Task


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
