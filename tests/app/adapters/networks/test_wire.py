"""Amounts and times of networks: what can be kept is read, and everything else is not known."""

from datetime import UTC, datetime
from decimal import Decimal

import msgspec
import pytest

from app.adapters.networks.wire import balance_of, cost_of, moment
from domain.cost import Cost, ProviderBalance


@pytest.mark.parametrize(
    ("told", "micros"),
    [(b"2.28", 2_280_000), (b"0.0000005", 0), (b"0.0000015", 2), (b"1e12", 10**18)],
)
def test_amounts_are_read_without_binary_fractions(told: bytes, micros: int) -> None:
    amount = msgspec.json.decode(told, type=Decimal)
    assert cost_of(amount, "USD", "o-1") == Cost(micros, "USD", "o-1", estimated=False)
    assert balance_of(-amount, "USD") == ProviderBalance(-micros, "USD")


@pytest.mark.parametrize("told", ["NaN", "Infinity", "-Infinity", "1e13", "1e999999", "-1e999999"])
def test_an_amount_that_no_books_can_hold_is_not_known(told: str) -> None:
    assert cost_of(Decimal(told), "USD", None) is None
    assert balance_of(Decimal(told), "USD") is None


@pytest.mark.parametrize("currency", [None, "", "usd", "USDT", "ÄÖÜ"])
def test_an_amount_without_a_currency_is_not_known(currency: str | None) -> None:
    assert cost_of(Decimal(1), currency, None) is None


def test_a_cost_is_not_below_zero() -> None:
    assert cost_of(Decimal("-0.01"), "USD", None) is None


@pytest.mark.parametrize("told", ["2023-02-27 14:09:55", "2023-02-27T16:09:55+02:00"])
def test_a_time_is_in_utc(told: str) -> None:
    assert moment(told) == datetime(2023, 2, 27, 14, 9, 55, tzinfo=UTC)


@pytest.mark.parametrize("told", [None, "", "soon", "0001-01-01T00:00:00+01:00"])
def test_what_is_no_time_is_none(told: str | None) -> None:
    assert moment(told) is None
