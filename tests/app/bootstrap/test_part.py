"""Parts of a container: each is made once, whoever asks, of what its class declares."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from inspect import signature
from threading import Barrier, BrokenBarrierError, RLock
from types import UnionType
from typing import Any, Literal, Union, cast, get_args, get_origin, get_type_hints

import pytest

from app.bootstrap.container import part
from app.settings import Settings
from tests.installation import Installation, Process

TOGETHER_S = 0.2  # Two makers meet within it, if there are two.


class Whole:
    """It has a part that takes a while to make, and one that asks for it."""

    def __init__(self) -> None:
        self.making = RLock()
        self.made = 0
        self.asked = Barrier(2)
        self._meeting = Barrier(2)

    @part
    def slow(self) -> object:
        self.made += 1
        with suppress(BrokenBarrierError):  # Nobody else makes it.
            self._meeting.wait(TOGETHER_S)
        return object()

    @part
    def upper(self) -> tuple[object]:
        return (self.slow,)


def test_two_threads_that_ask_at_once_get_the_same_part() -> None:
    whole = Whole()

    def ask() -> object:
        whole.asked.wait()
        return whole.upper[0]

    with ThreadPoolExecutor(2) as pool:
        first, second = pool.submit(ask), pool.submit(ask)
    assert first.result() is second.result() is whole.slow
    assert whole.made == 1


def test_a_part_that_could_not_be_made_is_tried_again() -> None:
    answers = [1, 0]

    class Shaky:
        making = RLock()

        @part
        def ratio(self) -> float:
            return 1 / answers.pop()

    shaky = Shaky()
    with pytest.raises(ZeroDivisionError):
        _ = shaky.ratio
    assert shaky.ratio == 1.0


class CheckedProcess(Process):
    """Compares what its parts are given with the types that their classes declare."""

    def make(self, kind: Callable[..., Any], **given: Any) -> Any:
        made = cast("Any", kind)
        types = get_type_hints(made if issubclass(made, tuple) else made.__init__)
        for name, wanted in signature(kind).parameters.items():
            if name in given or wanted.default is wanted.empty:
                value = given[name] if name in given else getattr(self, name)
                assert fits(value, types[name]), (kind, name, value)
        return super().make(kind, **given)


def fits(value: object, declared: Any) -> bool:
    """Tell whether a value may be of a type; only the names that a protocol has are compared."""
    if get_origin(declared) in {Union, UnionType}:
        return any(fits(value, each) for each in get_args(declared))
    if get_origin(declared) is Literal:
        return value in get_args(declared)
    kind = get_origin(declared) or declared
    if getattr(kind, "_is_protocol", False):
        needed = (name for name in vars(kind) if name == "__call__" or not name.startswith("_"))
        return all(hasattr(value, name) for name in needed)
    return isinstance(value, kind)


def test_every_part_gets_what_its_class_declares(installation: Installation) -> None:
    sink = {"CHECKPOINT_SINK": f"file:{installation.directory}"}
    checked = CheckedProcess(Settings.from_env(installation.environment | sink))
    checked.complete()
    checked.close()
