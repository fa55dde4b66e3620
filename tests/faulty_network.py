"""The simulated network with faults of a test's own: an error before or after any of its calls."""

from collections import defaultdict
from collections.abc import Callable
from typing import Any

from domain.links.network import EsimNetwork

CHANGES = (
    "create_endpoint",
    "remove_endpoint",
    "release_esim",
    "add_plan",
    "remove_plan",
    "order",
    "take_back",
)


class Killed(BaseException):
    """Ends a worker in the middle of its work, as `kill -9` would; no code of ours catches it."""


class FaultyNetwork:
    """A network whose calls can fail before they reach it (nothing happens) or after (it does)."""

    def __init__(self, inner: EsimNetwork) -> None:
        self.inner = inner
        self.name: str = inner.name
        self.settles_after = inner.settles_after
        self.calls: list[str] = []
        self._before: dict[str, list[BaseException | Callable[[], object]]] = defaultdict(list)
        self._after: dict[str, list[BaseException | Callable[[], object]]] = defaultdict(list)

    def before(self, call: str, *happenings: BaseException | Callable[[], object]) -> None:
        """Let each of the next such calls meet one of these instead of, or before, the network."""
        self._before[call] += happenings

    def after(self, call: str, *happenings: BaseException | Callable[[], object]) -> None:
        """Let each of the next such calls reach the network, and then meet one of these."""
        self._after[call] += happenings

    def count(self, call: str) -> int:
        """How often a call has been made."""
        return self.calls.count(call)

    def __getattr__(self, call: str) -> Any:
        reached = getattr(self.inner, call)
        if not callable(reached):
            return reached

        def called(*args: Any, **kwargs: Any) -> Any:
            self.calls.append(call)
            _happen(self._before[call])
            answer = reached(*args, **kwargs)
            _happen(self._after[call])
            return answer

        return called


def _happen(happenings: list[BaseException | Callable[[], object]]) -> None:
    if not happenings:
        return
    happening = happenings.pop(0)
    if isinstance(happening, BaseException):
        raise happening
    happening()
