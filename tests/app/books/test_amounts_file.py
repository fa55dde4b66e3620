"""Files of amounts as providers and banks write them: read whole, or refused with each reason."""

from dataclasses import replace

import pytest

from app.books.reconcile import FILE_BYTES_MAX, FileRefused, Layout, read_amounts

LAYOUT = Layout("USD")
ENCODING = "--encoding names another one"
NO_HEAD = "no line has each of 'reference', 'amount' once: options such as --amount name them"


def amounts(text: str, layout: Layout = LAYOUT) -> list[int]:
    return [each.amount_micros for each in read_amounts(text.encode(), layout)]


def wrong(data: bytes, layout: Layout = LAYOUT) -> list[str]:
    with pytest.raises(FileRefused) as refused:
        read_amounts(data, layout)
    return [*refused.value.lines]


def column(*values: str) -> str:
    return "\n".join(["reference;amount", *(f"r;{value}" for value in values)])


@pytest.mark.parametrize("separator", [",", ";", "\t"])
def test_what_separates_the_columns_is_found_by_the_head(separator: str) -> None:
    head = separator.join(["Date", " Reference ", "AMOUNT", "Text, or; so"])
    row = separator.join(["1.2.2026", '"a,b;c"', "4.50", ""])
    (found,) = read_amounts(f"{head}\r\n{row}\r\n".encode(), LAYOUT)
    assert (found.line, found.reference, found.amount_micros) == (2, "a,b;c", 4_500_000)


def test_lines_may_come_before_the_head_and_empty_ones_after_it() -> None:
    text = 'Account;DE00 1234\n"From";"1.1.2026"\n\nreference;amount\n;\nr;1\n\n'
    assert [each.line for each in read_amounts(text.encode(), LAYOUT)] == [6]


def test_only_lines_with_the_wanted_value_are_read() -> None:
    text = "Start Date;category;price\nr;lookups;1\nr;sms;many\nr;lookups;2\n;;3\n"
    layout = replace(LAYOUT, reference="start_date", amount="Price", only=("Category", "lookups"))
    assert amounts(text, layout) == [1_000_000, 2_000_000]
    told = NO_HEAD.replace("'reference', 'amount'", "'start_date', 'Price', 'Category'")
    assert wrong(b"start_date,price,category,PRICE\n", layout) == [told]


def test_text_is_read_in_its_encoding() -> None:
    for name in ("utf-8", "utf-8-sig", "utf-16", "cp1252"):
        data = "reference;amount\nÜberweisung;1,50".encode(name)
        (found,) = read_amounts(data, replace(LAYOUT, encoding=name if name == "cp1252" else None))
        assert (found.reference, found.amount_micros) == ("Überweisung", 1_500_000)
    unknown = [wrong(b"a", replace(LAYOUT, encoding=it)) for it in ("klingon", "undefined")]
    assert unknown == [["there is no encoding klingon"], ["there is no encoding undefined"]]


@pytest.mark.parametrize(
    ("written", "micros"),
    [
        ("12", 12_000_000),
        ("12.5", 12_500_000),
        ("12,5", 12_500_000),
        ("1,234.56", 1_234_560_000),
        ("1.234,56", 1_234_560_000),
        ("1'234.56", 1_234_560_000),
        ("1 234,56", 1_234_560_000),
        ("1\u202f234,56", 1_234_560_000),
        ("1.234.567.890", 1_234_567_890_000_000),
        ("-0.008", -8_000),
        ("+0,00800000", 8_000),
        ("12,50-", -12_500_000),
        ("\u22124.50", -4_500_000),
        ("1234.5678", 1_234_567_800),
    ],
)
def test_an_amount_is_read_as_people_write_it(written: str, micros: int) -> None:
    assert amounts(column(written)) == [micros]


@pytest.mark.parametrize(
    "written", ["", "4.50 EUR", "-1-", "12,34.5", "0.0000001", "٤", "1" * 13, "1" + ",000" * 5_000]
)
def test_what_is_no_amount_is_named_by_line_and_column(written: str) -> None:
    assert wrong(column("1", written).encode()) == [
        f"line 3, column amount: {written[:40]!r} is no amount"
    ]


def test_the_whole_file_decides_what_a_point_is() -> None:
    assert amounts(column("1.234", "4,50")) == [1_234_000_000, 4_500_000]
    assert amounts(column("1.234", "4.50")) == [1_234_000, 4_500_000]
    told = "line 3, column amount: '1.234' can be read in two ways; --decimal says which"
    assert wrong(column("2", "1.234").encode()) == [told]
    assert amounts(column("1.234"), replace(LAYOUT, decimal="point")) == [1_234_000]
    assert amounts(column("1.234"), replace(LAYOUT, decimal="comma")) == [1_234_000_000]


def test_currencies_are_in_a_column_or_all_the_same() -> None:
    layout = replace(LAYOUT, currency_column="ccy")
    found = read_amounts(b"ccy,reference,amount\neur,a,1\nUSD,b,2\n", layout)
    assert [each.currency for each in found] == ["EUR", "USD"]
    assert read_amounts(b"reference,amount\na,1\n", LAYOUT)[0].currency == "USD"


def test_a_line_without_a_reference_is_kept_if_it_has_an_amount() -> None:
    assert [each.reference for each in read_amounts(b"reference,amount\n,5\n , \n", LAYOUT)] == [""]


@pytest.mark.parametrize(
    ("data", "told"),
    [
        ("reference;amount\nÜ;1".encode("cp1252"), f"is not utf-8: see byte 17; {ENCODING}"),
        (b"reference,amount\nr,4,50\n", "line 2: has 3 values, the head has 2 columns"),
        (b"ref,sum\na,1\n", NO_HEAD),
        (b"", NO_HEAD),
        (b'reference,amount\n"' + b"x" * 200_000, "line 2: field larger than field limit (131072)"),
        (b"x" * (FILE_BYTES_MAX + 1), f"is larger than {FILE_BYTES_MAX} bytes"),
    ],
    ids=["encoding", "decimal comma", "other columns", "empty", "long", "large"],
)
def test_a_file_that_cannot_be_read_is_refused(data: bytes, told: str) -> None:
    assert wrong(data) == [told]
