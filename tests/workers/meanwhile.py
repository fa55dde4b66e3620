"""Something that happens just before or after a call: another process, an error, a kill."""

from collections.abc import Callable
from operator import attrgetter

import pytest

from tests.installation import Process


def nothing() -> None:
    """Do nothing."""


def around(
    monkeypatch: pytest.MonkeyPatch,
    process: Process,
    place: str,
    *,
    before: Callable[[], object] = nothing,
    after: Callable[[], object] = nothing,
) -> None:
    """Call something once, around the next call of a method such as `log.append`."""
    part, call = place.split(".")
    owner = attrgetter(part)(process)
    real, pending = getattr(owner, call), [True]

    def called(*args: object, **kwargs: object) -> object:
        is_next = bool(pending)
        pending.clear()
        if is_next:
            before()
        answer = real(*args, **kwargs)
        if is_next:
            after()
        return answer

    monkeypatch.setattr(owner, call, called)


def failing(error: BaseException) -> Callable[[], object]:
    """Return a function that raises this error."""

    def fail() -> None:
        raise error

    return fail
