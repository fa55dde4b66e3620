"""The newest attempt of a key is found without looking at each."""

import pytest

from domain.errors import IdempotencyKeyReused
from domain.links.buying import USED_UP, last_attempt


def test_the_newest_attempt_is_found_however_many_there_are() -> None:
    for count in (*range(70), 127, 128, 129, 1_000):
        found = last_attempt(lambda n, count=count: n if n <= count else None)
        assert found == (count, count or None)


@pytest.mark.parametrize(("count", "looks"), [(0, 1), (1, 2), (2, 4), (1_000, 20)])
def test_it_costs_few_looks(count: int, looks: int) -> None:
    looked: list[int] = []

    def find(number: int) -> str | None:
        looked.append(number)
        return "attempt" if number <= count else None

    last_attempt(find)
    assert len(looked) <= looks
    assert len(set(looked)) == len(looked)
    assert min(looked) == 1


def test_a_key_without_end_is_refused() -> None:
    with pytest.raises(IdempotencyKeyReused, match=USED_UP):
        last_attempt(lambda number: number)


def test_an_attempt_that_comes_while_one_looks_is_found_or_not_but_nothing_else() -> None:
    count = 3

    def find(number: int) -> int | None:
        nonlocal count
        found = number if number <= count else None
        count = 6
        return found

    assert last_attempt(find) in {(3, 3), (4, 4), (5, 5), (6, 6)}
