"""Money is read and written exactly, or refused."""

from string import digits

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.money import AMOUNT_MICROS_MAX, format_amount, parse_amount

MICROS = st.integers(0, AMOUNT_MICROS_MAX - 1)


READ = {"0": 0, "0.00": 0, "12.50": 12_500_000, "0.005": 5_000, "0.000001": 1}
READ |= {"999999999999.999999": AMOUNT_MICROS_MAX - 1}
WRITTEN = {0: "0.00", 1: "0.000001", 5_000: "0.005", 10_000: "0.01", 12_500_000: "12.50"}
WRITTEN |= {12_000_000: "12.00", -1: "-0.000001", -1_500_000: "-1.50"}
WRITTEN |= {AMOUNT_MICROS_MAX: "1000000000000.00"}


def test_a_decimal_string_is_read_exactly_and_written_with_two_to_six_decimals() -> None:
    assert {text: parse_amount(text) for text in READ} == READ
    assert {micros: format_amount(micros) for micros in WRITTEN} == WRITTEN


NO_AMOUNTS = "| 1|1 |1\n|+1|-1|1.|.5|1,5|1_000|1e3|0x1|NaN|Infinity|1.0000001|1000000000000"
NO_AMOUNTS += "|01|00|007.1|00.5"  # A zero in front may be a misread octal or a lost digit.
NO_AMOUNTS += "|\u0661\u0662|\uff11.\uff15|1.\u096b|\u00b2"  # Digits of others.


def test_anything_else_is_refused() -> None:
    for text in NO_AMOUNTS.split("|"):
        with pytest.raises(ValueError, match="at most six decimals"):
            pytest.fail(f"{text!r} is {parse_amount(text)}")


@given(MICROS)
def test_what_was_written_is_read_as_the_same_amount(micros: int) -> None:
    assert parse_amount(format_amount(micros)) == micros


@given(st.text(f"{digits}.,+-eE _\u0661\uff11"))
def test_any_text_is_an_amount_in_plain_form_or_refused(text: str) -> None:
    try:
        micros = parse_amount(text)
    except ValueError:
        return
    assert set(text) <= set("0123456789.")
    assert 0 <= micros < AMOUNT_MICROS_MAX
