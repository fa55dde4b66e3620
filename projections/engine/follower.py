"""A follower lets a consumer take steps, waits to be woken, and backs off when a step fails.

Of several copies one is active and the others stand by, which saves work. Safety comes from
positions: if two copies are active, one moves the position and the other rolls back.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from threading import Event
from typing import Protocol

from domain.log.signal import Signal
from projections.engine.complaint import Complaint
from projections.engine.consumer import PACE_S

IDLE_S = 0.4  # Without a wake-up a follower looks by itself after this time, well within a second.
BACK_OFF_MIN_S = 0.1
# Recovery must take less than 5 s, and a lock that is not renewed for 4 s is lost.
BACK_OFF_MAX_S = 3.0


# Takes a step along the log; returns how many events it has read, None if this copy only stands by.
# It may raise anything.
Step = Callable[[], int | None]


@dataclass(frozen=True)
class Follower:
    """Takes steps until it is stopped.

    After a step that has read `batch_max` events it goes on at once, because there may be more.
    Otherwise it waits to be woken, at most `idle_s`.
    """

    name: str
    step: Step
    waker: Signal
    pace_s: float = PACE_S
    batch_max: int = 1
    idle_s: float = IDLE_S

    def run(self, stop: Event) -> None:
        """Follow until `stop` is set; after a step that raises, pause and try again."""
        pause_s = BACK_OFF_MIN_S
        complaint = Complaint(f"follower {self.name}")
        while not stop.is_set():
            seen, started = self.waker.count, time.monotonic()
            try:
                read = self.step()
                complaint.over()
                if read is None:
                    stop.wait(IDLE_S)  # It listens to nobody.
                elif read < self.batch_max and not stop.is_set():
                    self.waker.wait(seen, self.idle_s)
                    stop.wait(max(0.0, started + self.pace_s - time.monotonic()))
            except Exception as error:  # noqa: BLE001  # Any error may be temporary.
                complaint.of(error)
                stop.wait(pause_s)
                pause_s = min(2 * pause_s, BACK_OFF_MAX_S)
                continue
            pause_s = BACK_OFF_MIN_S


class Lock(Protocol):
    """A lock that one process at a time can hold."""

    def acquire(self) -> bool:
        """Take the lock if it is free; return whether we hold it. Raises while this is unknown."""
        ...

    def release(self) -> None:
        """Let go of the lock, so that another process can take over at once."""
        ...


@dataclass(frozen=True)
class LockedStep:
    """Takes steps while it holds its lock; otherwise asks for the lock at each step.

    While it `rests` it leaves the lock to another copy. It tells whether it is active.
    """

    lock: Lock
    step: Step
    paused: Callable[[], bool] = lambda: False
    report: Callable[[bool], None] = lambda _: None

    def __post_init__(self) -> None:
        self.report(False)  # noqa: FBT003  # A gauge with two values.

    def __call__(self) -> int | None:
        """Take a step if this copy is active; return how many events it has read."""
        if self.paused():
            self.release()
            return None
        is_mine = False
        try:
            is_mine = self.lock.acquire()
        finally:
            self.report(is_mine)
        return self.step() if is_mine else None

    def release(self) -> None:
        self.report(False)  # noqa: FBT003  # As above.
        self.lock.release()
