"""What bookkeeping calls our accounts is read whole, or refused with a line for every mistake."""

import json
from typing import Any

import pytest

from app.books.journal import DEFAULT, EACH, ROOTS, code_of
from app.books.postings import BANK, CLAIMS
from app.cli.import_files import read_account_file
from domain.catalogue.file_errors import FileRefused

WHOLE: dict[str, Any] = json.loads(DEFAULT.read_bytes())
CODES = WHOLE["xero"]["accounts"]
LETTERS = "must be 1 to 10 letters and digits"
WRONG_ZONES = ("Europe/Berln", "europe/berlin", "../UTC", "posix/UTC", "localtime", "", None, 1, [])
NO_ZONE = "time_zone: must be the name of a time zone, such as Europe/Berlin"
NAMED = "must be a name that begins with a letter or digit"


def lines(given: Any) -> list[str]:
    data = given if isinstance(given, bytes) else json.dumps(given).encode()
    with pytest.raises(FileRefused) as refused:
        read_account_file(data)
    return refused.value.lines


def changed(program: str, **changes: Any) -> dict[str, Any]:
    """Return the default with other facts of a program, or another code for an account."""
    its = {**WHOLE[program], **changes}
    if "Income" in changes:
        its["accounts"] = {**its["accounts"], "Income": its.pop("Income")}
    return {**WHOLE, program: its}


def with_codes(**changes: Any) -> dict[str, Any]:
    codes = {name: code for name, code in {**CODES, **changes}.items() if code is not ...}
    return {"postings": "daily", "xero": {"tax_rate": "Tax Exempt", "accounts": codes}}


def test_an_account_of_datev_is_at_most_one_digit_longer_than_its_length() -> None:
    longest = changed("datev", Income="42001")
    assert read_account_file(json.dumps(longest).encode()) == longest
    rule = "datev.accounts.Income: must have at most 5 digits: account_length, or one more"
    assert lines(changed("datev", Income="420012")) == [f"{rule}"]


def test_the_default_is_a_file_that_can_be_read() -> None:
    assert read_account_file(DEFAULT.read_bytes()) == WHOLE
    named = {tuple(WHOLE[name]["accounts"]) for name in ("datev", "xero", "quickbooks")}
    assert named == {(ROOTS[0], CLAIMS, BANK, *ROOTS[1:])}


def test_an_account_has_the_code_of_the_nearest_name_above_it() -> None:
    read = read_account_file(json.dumps(with_codes(**{"Income:Lookup": "201"})).encode())
    codes = read["xero"]
    assert (read["datev"], read["quickbooks"]) == (None, None)
    assert code_of(codes, "Income:Lookup") == "201"
    assert code_of(codes, "Income:Bulk-lookup") == CODES["Income"]
    assert code_of(codes, "Income:Refunds:Lookup") == CODES["Income:Refunds"]
    assert code_of(codes, "Expenses:Providers:Twilio") == CODES["Expenses:Providers"]


def test_each_customer_may_have_an_account_by_its_number() -> None:
    with_stars = with_codes(**{EACH: "W*"})
    read = read_account_file(json.dumps(with_stars).encode())["xero"]
    assert code_of(read, "Liabilities:Wallets:10001") == "W10001"
    assert code_of(read, "Liabilities:Wallets") == CODES["Liabilities:Wallets"]
    datev = WHOLE["datev"] | {"accounts": WHOLE["datev"]["accounts"] | {EACH: "*"}}
    for number in ("1460", "4711", "1000100"):  # Of deposits, not personal, and too long.
        assert code_of(datev, f"Liabilities:Wallets:{number}") == "3250"
    rule = f"xero.accounts.'{EACH}': {LETTERS}, with * for the 1 to 9 digits of a number"
    for wrong in ("W", "**", "WW*", "=*", "", 1):  # The longest number has nine digits.
        assert lines(with_codes(**{EACH: wrong})) == [rule]


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({}, ["postings: is missing"]),
        ({"postings": "weekly"}, ["postings: must be one of: daily, single"]),
        ({"postings": "daily"}, ["names no program: datev, xero, quickbooks"]),
        (
            b'{"postings": "daily", "postings": "single"}',
            ["is not JSON that can be read: 'postings' stands twice in one object"],
        ),
        ({**WHOLE, "sage": {}}, ["sage: is unknown"]),
        ({**WHOLE, "xero": {"tax_rate": "x"}}, ["xero.accounts: is missing"]),
        (changed("xero", tax_rate="=1"), [f"xero.tax_rate: {NAMED}"]),
        (changed("quickbooks", Income="a\ud800"), [f"quickbooks.accounts.Income: {NAMED}"]),
        (changed("xero", accounts=[]), ["xero.accounts: must be an object"]),
        (with_codes(Income=...), ["xero.accounts.Income: is missing"]),
        (
            with_codes(**{"Rounding": CODES["Liabilities:Wallets"], "Liabilities:Wallets": 1}),
            [f"xero.accounts.'Liabilities:Wallets': {LETTERS}"],
        ),
        (
            with_codes(Rounding=CODES["Liabilities:Wallets"]),
            ["xero.accounts.Rounding: must not be that of a liability"],
        ),
        (with_codes(Incom="200"), ["xero.accounts.Incom: is unknown"]),
        *(({**WHOLE, "time_zone": each}, [NO_ZONE]) for each in WRONG_ZONES),
        *(
            (with_codes(Income=code), [f"xero.accounts.Income: {LETTERS}"])
            for code in (200, None, "", "=1", "12345678901", "20\n")
        ),
        (
            changed("datev", consultant=1000, year_begins=13),
            [
                "datev.consultant: must be a whole number from 1001 to 9999999",
                "datev.year_begins: must be a whole number from 1 to 12",
            ],
        ),
        (
            changed("datev", Income="00"),
            ["datev.accounts.Income: must be 1 to 9 digits, and not all 0"],
        ),
        (
            changed("quickbooks", date="YYYY-MM-DD", Income="-x"),
            [
                "quickbooks.date: must be one of: MM/DD/YYYY, DD/MM/YYYY",
                f"quickbooks.accounts.Income: {NAMED}",
            ],
        ),
    ],
)
def test_each_mistake_is_told_with_its_field(given: Any, told: list[str]) -> None:
    assert lines(given) == [f"{each}" for each in told]
