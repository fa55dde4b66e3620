"""One of several copies is active, the others stand by; positions are the fence, not this."""

from typing import Protocol

from projections.follower import Step


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
