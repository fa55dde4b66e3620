"""A network that acts long after its caller was told that the outcome is unknown."""

from collections import defaultdict
from contextlib import suppress
from datetime import datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING, Any

from domain.links.network import EsimNetwork
from domain.provider_errors import OutcomeUnknown, ProviderError
from tests.installation import SetClock

if TYPE_CHECKING:
    from collections.abc import Callable


class LateNetwork:
    """Delays calls while the clock runs on; nobody waits for the reply of a delayed call."""

    def __init__(self, inner: EsimNetwork, clock: SetClock) -> None:
        self.inner = inner
        self.name = inner.name
        self.settles_after = inner.settles_after
        self._clock = clock
        self._delays: dict[str, list[timedelta]] = defaultdict(list)
        self._waiting: list[tuple[datetime, Callable[[], object]]] = []

    def later(self, call: str, after_s: float) -> None:
        """Let the next such call meet its time-out, and happen so long after it was begun."""
        self._delays[call].append(timedelta(seconds=after_s))

    @property
    def is_waiting(self) -> bool:
        return bool(self._waiting)

    def look(self) -> None:
        """Do what is due by now."""
        due = [each for each in self._waiting if each[0] <= self._clock()]
        self._waiting = [each for each in self._waiting if each[0] > self._clock()]
        book = getattr(self.inner, "book", None)  # Of a network that stamps its orders.
        for at, call in due:
            if book is not None:
                book.late_at = at  # Time may have passed in one stride.
            with suppress(ProviderError):
                call()
        if book is not None:
            book.late_at = None

    def __getattr__(self, call: str) -> Any:
        reached = getattr(self.inner, call)
        if not callable(reached) or call == "skip_esim":  # It calls nobody.
            return reached

        def called(*args: Any, timeout_s: float, **options: Any) -> Any:
            self.look()
            if not self._delays[call]:
                return reached(*args, timeout_s=timeout_s, **options)
            at = self._clock() + self._delays[call].pop(0)
            self._waiting.append((at, partial(reached, *args, timeout_s=timeout_s, **options)))
            self._clock.forward(seconds=timeout_s)
            message = "the reply did not come in time"
            raise OutcomeUnknown(message)

        return called
