"""One turn that passes between a request and those that it waits for: no two run at once."""

from collections.abc import Callable
from queue import SimpleQueue
from threading import Event, Semaphore, Thread

from tests.installation import PATIENCE_S


class Turns:
    """Runs the work of others on one thread, as far as it is let."""

    def __init__(self) -> None:
        self._work = SimpleQueue[Callable[[], None] | None]()
        self._ours, self._theirs = Semaphore(0), Semaphore(0)
        self._error: BaseException | None = None
        self.is_under_way = False  # The others have begun and not ended.
        self.is_theirs = False
        Thread(target=self._run, name="others", daemon=True).start()

    def begin(self, work: Callable[[], None]) -> None:
        """Give the turn to others; it comes back when they give it back, or have ended."""
        assert not self.is_under_way
        self.is_under_way = True
        self._pass(lambda: self._work.put(work))

    def resume(self) -> None:
        """Let the others go on from where they gave the turn back."""
        self._pass(self._theirs.release)

    def end(self) -> None:
        """Let the others go on to their end."""
        while self.is_under_way:
            self.resume()

    def give_back(self) -> None:
        """Stand still, on whatever thread of theirs, until the turn comes again."""
        self.is_theirs = False
        self._ours.release()
        self._theirs.acquire()
        self.is_theirs = True

    def close(self) -> None:
        self._work.put(None)

    def _pass(self, wake: Callable[[], None]) -> None:
        self.is_theirs = True
        wake()
        assert self._ours.acquire(timeout=PATIENCE_S), "the others do not come to their end"
        error, self._error = self._error, None
        if error is not None:
            raise error

    def _run(self) -> None:
        while (work := self._work.get()) is not None:
            try:
                work()
            except BaseException as error:  # noqa: BLE001  # It is the test's, on its own thread.
                self._error = error
            self.is_under_way = self.is_theirs = False
            self._ours.release()


class News:
    """What a request waits for: while it does, the others have their turn."""

    def __init__(self, event: Event, turns: Turns, work: Callable[[], None]) -> None:
        self._event, self._turns, self._work = event, turns, work
        self.clear, self.is_set = event.clear, event.is_set

    def wait(self, timeout_s: float | None = None) -> bool:
        """Wait until somebody has told, however long the others take by the clock."""
        del timeout_s
        while not self._event.is_set():
            if self._turns.is_under_way:
                self._turns.resume()
            else:
                self._turns.begin(self._work)
            if not self._turns.is_under_way:
                assert self._event.is_set(), "nobody has told what this request waits for"
        return True
