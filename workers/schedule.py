"""The clock: runs each task at its interval; a task may run late or twice without harm."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from threading import Event

from domain.errors import ServiceUnavailable
from projections.engine.complaint import Complaint

TICK_S = 1.0


@dataclass(frozen=True)
class Task:
    """Something to do at intervals, for the first time after `first_s` if that is given.

    A task that returns True has more to do, at the next tick. An `expected` error is logged
    without its traceback.
    """

    name: str
    every_s: float
    run: Callable[[], object]
    first_s: float | None = None
    expected: type[Exception] = ServiceUnavailable


class Schedule:
    """Runs tasks one after the other; one that fails is tried again at its next turn."""

    def __init__(self, tasks: Sequence[Task]) -> None:
        self._tasks = tasks
        now = time.monotonic()
        firsts = ((each, each.every_s if each.first_s is None else each.first_s) for each in tasks)
        self._complaints = {
            each.name: Complaint(f"task {each.name}", each.expected) for each in tasks
        }
        self._due = {each.name: now + first_s for each, first_s in firsts}

    def tick(self) -> None:
        for task in self._tasks:
            if time.monotonic() < self._due[task.name]:
                continue
            self._due[task.name] = time.monotonic() + task.every_s
            try:
                if task.run() is True:
                    self._due[task.name] = time.monotonic()
                self._complaints[task.name].over()
            except Exception as error:  # noqa: BLE001  # Whatever the error, other tasks have their turn.
                self._complaints[task.name].of(error)


def run_schedule(stop: Event, tick: Callable[[], object]) -> None:
    """Tick until `stop` is set; a tick that raises, such as one without its lock, is skipped."""
    complaint = Complaint("the tick of the clock")
    while not stop.wait(TICK_S):
        try:
            tick()
            complaint.over()
        except Exception as error:  # noqa: BLE001  # Whatever the error, it may be temporary.
            complaint.of(error)
