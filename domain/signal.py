"""A wake-up call inside one process: whoever waits learns that the log has grown."""

from threading import Condition


class Signal:
    """Counts calls, so that a call between looking and waiting is never missed."""

    def __init__(self) -> None:
        self._condition = Condition()
        self._count = 0

    @property
    def count(self) -> int:
        """How many calls there have been; pass it to `wait`."""
        return self._count

    def call(self) -> None:
        """Wake everybody who waits."""
        with self._condition:
            self._count += 1
            self._condition.notify_all()

    def wait(self, seen: int, timeout_s: float) -> bool:
        """Wait, at most so long, for a call after the `seen` one; tell whether there was one."""
        with self._condition:
            return self._condition.wait_for(lambda: self._count != seen, timeout_s)
