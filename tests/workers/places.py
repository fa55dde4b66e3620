"""The places where other processes may come between: commits, and reads of the log."""

from collections.abc import Callable
from typing import Any, Literal

from domain.accounts.wallet import Wallet
from tests.faulty_network import Killed
from tests.installation import Process

When = Literal["before", "after"]
Happening = Callable[[], object]


class Places:
    """Counts what a process does of one kind; at each a test can let something happen.

    It happens to whoever commits or reads, never to the committer's own thread.
    """

    def __init__(self) -> None:
        self._count = 0
        self._happenings: dict[tuple[int, When], Happening] = {}
        self._is_quiet = False

    def at(self, number: int, when: When, happening: Happening) -> None:
        """Call something at the place of this number, counted from now on, from 1."""
        self._count, self._is_quiet = 0, False
        self._happenings = {(number, when): happening}

    @property
    def is_waiting(self) -> bool:
        return bool(self._happenings)

    def forget(self) -> None:
        self._happenings = {}

    def passing(self, call: Callable[..., Any]) -> Callable[..., Any]:
        """Return a call that is one of these places."""

        def passed(*args: Any, **options: Any) -> Any:
            if self._is_quiet or Wallet in args:  # What happens may do the same; it is not counted.
                return call(*args, **options)
            self._count += 1
            number = self._count
            self._happen(number, "before")
            answer = call(*args, **options)
            self._happen(number, "after")
            return answer

        return passed

    def _happen(self, number: int, when: When) -> None:
        happening = self._happenings.pop((number, when), None)
        if happening is None:
            return
        self._is_quiet = True
        try:
            happening()
        finally:
            self._is_quiet = False


def watch_commits(process: Process, places: Places) -> None:
    """Count what a process appends to the log, with a wallet or without.

    What a kill leaves behind is known by the last commit before it, so these are all the places to
    die at.
    """
    process.log.append = places.passing(process.log.append)
    process.log.claim = places.passing(process.log.claim)
    process.committer.commit = places.passing(process.committer.commit)


def watch_reads(process: Process, places: Places) -> None:
    """Count what a process reads from the log; wallets are read by its committer, too."""
    process.log.find = places.passing(process.log.find)


def die() -> None:
    """End a worker here, as `kill -9` would."""
    raise Killed
