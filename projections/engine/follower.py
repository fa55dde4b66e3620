"""A pull follower: it takes steps along the log, waits to be woken, and backs off when it fails.

One of several copies is active, the others stand by; positions are the fence, not this.
"""

import time
from collections.abc import Callable
from threading import Event
from typing import Protocol

from projections.engine.complaint import Complaint

PACE_S = 0.05  # Between two steps under load: a batch of many costs little more than one of one.
IDLE_S = 0.4  # The bounded wait: whoever was not woken looks by itself. Well inside a second, too.
BACK_OFF_MIN_S = 0.1
BACK_OFF_MAX_S = 3.0  # Recovery takes less than 5 s, and a lock left alone for 4 s is lost.


class Waker(Protocol):
    """Tells that the log has grown, in whatever process it was appended to."""

    @property
    def count(self) -> int:
        """A mark of the present moment, for `wait`."""
        ...

    def wait(self, seen: int, timeout_s: float) -> bool:
        """Wait, at most so long, until the log has grown since the mark."""
        ...


class Step(Protocol):
    """One step along the log; tells how many events it has read. Raises freely."""

    def __call__(self) -> int: ...


class Follower:
    """Takes steps until it is stopped.

    After one that has read `batch_max` events there may be more to read, without a wake-up.
    Without one it looks after `idle_s`.
    """

    def __init__(  # noqa: PLR0913  # What it does, and how often.
        self,
        name: str,
        step: Step,
        waker: Waker,
        pace_s: float = PACE_S,
        batch_max: int = 1,
        idle_s: float = IDLE_S,
    ) -> None:
        self.name = name
        self._idle_s = idle_s
        self._batch_max = batch_max
        self._pace_s = pace_s
        self._step = step
        self._waker = waker

    def run(self, stop: Event, on_error: Callable[[Exception], None] | None = None) -> None:
        """Follow until `stop` is set; a step that raises is taken again after a pause."""
        pause_s = BACK_OFF_MIN_S
        complaint = Complaint(f"follower {self.name}")
        while not stop.is_set():
            seen, began = self._waker.count, time.monotonic()
            try:
                read = self._step()
                complaint.over()
                self._rest(stop, seen, began, more=read >= self._batch_max)
            except Exception as error:  # noqa: BLE001  # Whatever it is, it may pass.
                complaint.of(error)
                if on_error is not None:
                    on_error(error)
                stop.wait(pause_s)
                pause_s = min(2 * pause_s, BACK_OFF_MAX_S)
                continue
            pause_s = BACK_OFF_MIN_S

    def _rest(self, stop: Event, seen: int, began: float, *, more: bool) -> None:
        if not more and not stop.is_set():
            self._waker.wait(seen, self._idle_s)
        stop.wait(max(0.0, began + self._pace_s - time.monotonic()))


class Lock(Protocol):
    """What one process holds at a time."""

    def hold(self) -> bool:
        """Take the lock if it is free; tell whether it is held. Raises while it cannot be told."""
        ...

    def release(self) -> None:
        """Let go, so that another one takes over at once."""
        ...


class Standby:
    """Takes steps while it holds its lock; until then it looks as often as a follower looks."""

    def __init__(self, lock: Lock, step: Step) -> None:
        self._lock = lock
        self._step = step

    def __call__(self) -> int:
        """Take a step if this is the active copy; tell how many events it has read."""
        return self._step() if self._lock.hold() else 0

    def release(self) -> None:
        """Let another copy be active."""
        self._lock.release()
