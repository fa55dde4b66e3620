"""Parts of a container: each is made once, whoever asks."""

from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from threading import Barrier, BrokenBarrierError, RLock

import pytest

from app.bootstrap.container import part

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
