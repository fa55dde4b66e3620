"""Plots: round scales, bars that add up, labels that fit."""

from datetime import date, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.finance.plots import DATES_MAX, STEPS_MAX, Scale, bars, dates, line
from app.finance.words import decimals_of, money, short_money


def days(count: int, start: date = date(2026, 1, 1)) -> list[date]:
    return [start + timedelta(days=number) for number in range(count)]


@given(st.lists(st.integers(-(10**15), 10**15), min_size=1))
def test_a_scale_holds_every_value_between_few_round_lines(values: list[int]) -> None:
    scale = Scale(values)
    assert scale.low <= min(values) <= max(values) <= scale.high
    assert scale.low <= 0 <= scale.high
    assert str(scale.step).rstrip("0") in {"1", "2", "5"}
    assert (2 if scale.step > 1 else 1) <= len(scale.marks(str)) <= STEPS_MAX + 3
    assert (scale.at(scale.high), scale.at(scale.low)) == (0, 100)


def test_bars_stand_on_each_other_and_refunds_hang_below() -> None:
    plot = bars(days(2), [{"a": 30, "b": 50, "c": -20}, {}], str, str)
    a, b, c = plot.bars
    assert a.y + a.height == pytest.approx(plot.zero)
    assert b.y + b.height == pytest.approx(a.y)
    assert c.y == pytest.approx(plot.zero)
    assert (a.height, b.height, c.height) == (30, 50, 20)
    assert [day.x for day in plot.days] == [0, 50]


def test_a_line_goes_from_edge_to_edge() -> None:
    plot = line(days(2), [0, 100], str, str)
    assert plot.line == "M0,100.0 L25.0,100.0 75.0,0.0 100,0.0"
    assert plot.area == f"{plot.line} L100,100.0 0,100.0 Z"


@pytest.mark.parametrize("count", [1, 2, 6, 7, 30, 31, 84, 90, 365, 366, 3_000])
def test_few_dates_are_labelled(count: int) -> None:
    marks = dates(days(count, date(2026, 11, 23) - timedelta(days=count - 1)))
    assert 1 <= len(marks) <= DATES_MAX
    assert all(0 < at < 100 for at, _ in marks)
    assert len({label for _, label in marks}) == len(marks)


def test_amounts_are_exact_and_a_column_has_one_number_of_decimals() -> None:
    assert money(-1_234_567_890_000) == "−1,234,567.89"
    assert money(5_000, sign=True) == "+0.005"
    assert money(0, sign=True) == "0.00"
    assert decimals_of([10_000, 5_000, -1]) == 6
    assert money(12_500_000, decimals_of([5_000])) == "12.500"
    assert [short_money(each) for each in (-500_000, 1_500_000_000)] == ["−0.5", "1.5 k"]
