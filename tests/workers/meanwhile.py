"""Something that happens just before or after a call: another process, an error, the end."""

from collections.abc import Callable
from operator import attrgetter

import pytest

from tests.installation import Process


def nothing() -> None:
    """Let nothing happen."""


def around(
    monkeypatch: pytest.MonkeyPatch,
    process: Process,
    place: str,
    *,
    before: Callable[[], object] = nothing,
    after: Callable[[], object] = nothing,
) -> None:
    """Let something happen once, around the next call of such as `log.append` of a process."""
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
    """Return what raises an error when it happens."""

    def fail() -> None:
        raise error

    return fail
