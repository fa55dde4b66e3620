"""Rates by day: exact, by the last day before, across the euro; a table is refused by its cells."""

from datetime import date, timedelta
from fractions import Fraction

import pytest

from app.books.rates import DAYS_BACK, TABLE_BYTES_MAX, Rates
from domain.catalogue.file_errors import FileRefused
from domain.errors import NotPossible

# As the ECB writes it: newest first, with a comma at the end, and N/A for what has no rate.
TABLE = "Date,USD,JPY,GBP,\n2026-10-05,1.25,160,N/A,\n2026-10-02,1.2,N/A,0.8,\n\n"
FRIDAY, SUNDAY, MONDAY = date(2026, 10, 2), date(2026, 10, 4), date(2026, 10, 5)
MILLION = 10**6


def rates(text: str = TABLE, base: str = "USD") -> Rates:
    return Rates(text.encode(), base)


@pytest.mark.parametrize(
    ("base", "currency", "day", "micros"),
    [
        ("EUR", "USD", MONDAY, 800_000),
        ("USD", "EUR", MONDAY, 1_250_000),
        ("USD", "EUR", SUNDAY, 1_200_000),
        ("USD", "GBP", FRIDAY, 1_500_000),
        ("USD", "GBP", MONDAY, 1_562_500),  # Today's dollars, and the pounds of Friday.
        ("GBP", "JPY", FRIDAY + timedelta(9), 5_000),
        ("USD", "USD", FRIDAY, MILLION),
    ],
)
def test_the_last_rate_counts_and_the_base_may_be_neither(
    base: str, currency: str, day: date, micros: int
) -> None:
    assert rates(base=base).adding_up()("", MILLION, currency, day) == micros


def test_rounded_amounts_add_up_to_the_sum_rounded_once() -> None:
    table = rates("Date,USD\n2026-10-02,1.1\n2026-10-05,1.3\n", "EUR")
    convert, amounts = table.adding_up(), [5] * 20 + [-3]
    for name in ("one", "other"):
        found = [convert(name, each, "USD", FRIDAY) for each in amounts]
        found += [convert(name, each, "USD", MONDAY) for each in amounts]
        exact = sum(amounts) * (Fraction(10, 11) + Fraction(10, 13))
        assert sum(found) == round(exact)
        each_by_itself = sum(round(each * Fraction(10, 11)) for each in amounts)
        assert abs(each_by_itself - sum(amounts) * Fraction(10, 11)) > 8


def test_half_of_one_goes_to_the_even_number() -> None:
    convert = rates("Date,USD\n2026-10-02,2\n", "EUR").adding_up()
    assert [convert("", 1, "USD", FRIDAY) for _ in range(6)] == [0, 1, 1, 0, 0, 1]


def test_a_day_before_the_first_long_after_the_last_and_another_currency_are_named() -> None:
    late = MONDAY + timedelta(DAYS_BACK + 1)
    for its, day in (
        ("USD", FRIDAY - timedelta(1)),
        ("JPY", SUNDAY),
        ("CHF", MONDAY),
        ("USD", late),
    ):
        with pytest.raises(NotPossible) as refused:
            rates().adding_up()("", 1, its.replace("USD", "EUR"), day)
        wanted = f"the table of rates has none of {its} for {day}, nor for the 10 days before it"
        assert str(refused.value) == wanted


def test_what_was_used_is_a_table_that_gives_the_same() -> None:
    asked = [("GBP", MONDAY), ("JPY", MONDAY + timedelta(3)), ("EUR", SUNDAY)]
    whole = rates()
    found = [whole.adding_up()("", MILLION, *each) for each in asked]
    used = "\n".join(map(",".join, whole.used()))
    assert used == "Date,GBP,JPY,USD\n2026-10-05,N/A,160,1.25\n2026-10-02,0.8,N/A,1.2"
    again = rates(used)
    assert [again.adding_up()("", MILLION, *each) for each in asked] == found
    assert "\n".join(map(",".join, again.used())) == used


def test_a_table_may_be_dressed_otherwise() -> None:
    for text in ("\ufeff" + TABLE, TABLE.replace("\n", "\r\n"), TABLE.replace(",", " , ")):
        assert rates(text).adding_up()("", MILLION, "EUR", SUNDAY) == 1_200_000


HEAD = "is not Date, or another currency than EUR"
NO_DATE = "is no date such as 2026-01-31 or 31.01.2026"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", f"line 1, column 1: '' {HEAD}"),
        ("Day,USD\n", f"line 1, column 1: 'Day' {HEAD}"),
        ("\nDate,usd\n", f"line 2, column 2: 'usd' {HEAD}"),
        ("Date,USD,EUR\n", f"line 1, column 3: 'EUR' {HEAD}"),
        ("Date,USD,USD\n", f"line 1, column 3: 'USD' {HEAD}"),
        ("Date,USD\n@,1\n@,1\n", "line 3, column Date: 2026-10-02 was there before"),
        ("Date,USD\n2 October,1\n", f"line 2, column Date: '2 October' {NO_DATE}"),
        ("Date,USD\n@,1,08\n", "line 2, column 3: '08' has no currency above it"),
        ("Date,USD,\n@,,7\n", "line 2, column 3: '7' has no currency above it"),
        ('Date,USD\n@,"' + "1" * 200_000, "line 2: field larger than field limit (131072)"),
        ("Date,USD\n" + "@,1\n" * (TABLE_BYTES_MAX // 12), "is larger than 4194304 bytes"),
    ],
)
def test_what_is_wrong_is_told_by_line_and_column(text: str, told: str) -> None:
    with pytest.raises(FileRefused) as refused:
        rates(text.replace("@", "2026-10-02"))
    assert refused.value.lines == [told]


@pytest.mark.parametrize(
    "cell",
    ["0", "0.000", "-1", "1e3", "NaN", "n/a", "=1+1", "\u0661", "9" * 200, "1.", "\ufffd", "1\0"],
)
def test_a_cell_that_is_no_rate_is_shown_in_part(cell: str) -> None:
    with pytest.raises(FileRefused) as refused:
        rates(f"Date,JPY,USD\n2026-10-02,,{cell}\n")
    assert refused.value.lines == [f"line 2, column USD: {cell[:40]!r} is no rate above zero"]


def test_of_what_is_no_table_little_is_told() -> None:
    for data in (TABLE.encode("utf-16"), b"Date,USD\n" + b"2026-10-02,x\n" * 30_000):
        with pytest.raises(FileRefused) as refused:
            Rates(data, "USD")
        assert 0 < len(refused.value.lines) <= 20
