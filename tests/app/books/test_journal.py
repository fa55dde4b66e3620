"""Postings in cents: how they are rounded, and divided among files."""

from datetime import date

import pytest

from app.books.journal import Booked, Move, in_cents, parts


@pytest.mark.parametrize(
    ("micros", "cents"),
    [(0, 0), (4_999, 0), (5_000, 1), (-4_999, 0), (-5_000, -1), (14_999, 1), (1_234_567, 123)],
)
def test_half_a_cent_is_rounded_away_from_zero(micros: int, cents: int) -> None:
    assert in_cents(micros) == cents


MOVE = Move(date(2026, 2, 1), "a", "b", "USD", 10_000, "")


def journals(*lengths: int) -> list[Booked]:
    """Return postings, so many of each journal."""
    return [
        Booked(str(number), "a", "b", 1, MOVE)
        for number, length in enumerate(lengths)
        for _ in range(length)
    ]


@pytest.mark.parametrize(
    ("lengths", "files"),
    [((), []), ((3,), [3]), ((2, 2, 2), [4, 2]), ((1, 4, 1), [1, 4, 1]), ((9, 1), [9, 1])],
)
def test_a_journal_is_whole_in_one_file(lengths: tuple[int, ...], files: list[int]) -> None:
    every = journals(*lengths)
    divided = [*parts(every, 4)]
    assert [len(each) for each in divided] == files
    assert [each for part in divided for each in part] == every
