"""Amounts and times of networks: what can be kept is read, and everything else is not known."""

from datetime import UTC, datetime
from decimal import Decimal

import msgspec
import pytest

from app.adapters.networks.wire import cost_of, moment
from app.adapters.remote.exchange import balance_of
from domain.cost import Cost, ProviderBalance


@pytest.mark.parametrize(
    ("told", "micros"),
    [(b"2.28", 2_280_000), (b"0.0000005", 0), (b"0.0000015", 2), (b"1e12", 10**18)],
)
def test_amounts_are_read_without_binary_fractions(told: bytes, micros: int) -> None:
    amount = msgspec.json.decode(told, type=Decimal)
    assert cost_of(amount, "USD", "o-1") == Cost(micros, "USD", "o-1", estimated=False)
    assert balance_of(-amount, "USD") == ProviderBalance(-micros, "USD")


def test_an_amount_that_no_books_can_hold_or_that_has_no_currency_is_not_known() -> None:
    for told in ("NaN", "Infinity", "-Infinity", "1e13", "1e999999", "-1e999999"):
        assert cost_of(Decimal(told), "USD", None) is balance_of(Decimal(told), "USD") is None
    for currency in (None, "", "usd", "USDT", "ÄÖÜ"):
        assert cost_of(Decimal(1), currency, None) is None
    assert cost_of(Decimal("-0.01"), "USD", None) is None, "a cost is not below zero"


def test_a_time_is_in_utc_and_what_is_none_is_none() -> None:
    for told in ("2023-02-27 14:09:55", "2023-02-27T16:09:55+02:00"):
        assert moment(told) == datetime(2023, 2, 27, 14, 9, 55, tzinfo=UTC)
    for nothing in (None, "", "soon", "0001-01-01T00:00:00+01:00"):
        assert moment(nothing) is None
