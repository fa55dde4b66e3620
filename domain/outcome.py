"""What becomes of a command: one answer, or none when its submitter withdraws in time."""

from collections.abc import Callable
from threading import Lock


class Outcome:
    """A promise between one submitter and one committer, made of two locks.

    A Future does the same, but wakes its caller at three times the cost, and on a hot wallet to
    wake callers is most of the work. So whoever has many in hand waits for none of them: each one
    is told by a call that must not wait, and one `ring` wakes the submitter for many.
    """

    __slots__ = ("_answered", "_claimed", "_error", "_is_answered", "_position", "_tell", "ring")

    def __init__(
        self, tell: Callable[[], object] | None = None, ring: Callable[[], object] | None = None
    ) -> None:
        self._tell = tell
        self.ring = ring
        self._claimed = Lock()  # By whoever is first: to take the command, or to withdraw it.
        self._answered = Lock()
        self._answered.acquire()  # Until there is an answer.
        self._is_answered = False
        self._position = 0
        self._error: Exception | None = None

    def take(self) -> bool:
        """Begin to carry it out; False when it was withdrawn."""
        return self._claimed.acquire(blocking=False)

    def withdraw(self) -> bool:
        """Make sure that it never happens; False when it was taken already."""
        return self._claimed.acquire(blocking=False)

    @property
    def is_open(self) -> bool:
        """Tell whether it waits for an answer; only the committer, who took it, may ask."""
        return self._claimed.locked() and not self._is_answered

    def succeed(self, position: int) -> None:
        """Answer with a position."""
        self._position = position
        self._answer()

    def fail(self, error: Exception) -> None:
        """Answer with an error."""
        self._error = error
        self._answer()

    def wait(self, timeout_s: float) -> bool:
        """Wait for the answer, at most so long; tell whether it has come. One may wait, once."""
        return self._answered.acquire(timeout=timeout_s)

    def result(self) -> int:
        """Return the position of an answer that has come, or raise its error."""
        if self._error is not None:
            raise self._error
        return self._position

    def _answer(self) -> None:
        self._is_answered = True
        tell, self._tell = self._tell, None  # Who is told may hold this: so it is no circle.
        if tell is None:
            self._answered.release()
        else:
            tell()
