"""The wallet decides about money, and about nothing else."""

from collections.abc import Callable
from uuid import UUID

import pytest
from msgspec.structs import replace

from domain.accounts.wallet import Charge, ChargeKind, Deposit, Wallet
from domain.errors import ConfigError, InsufficientBalance, NotPossible
from domain.money import AMOUNT_MICROS_MAX, parse_amount
from tests.domain.build import ORGANIZATION, adjustment, cause, charge, refund
from tests.story import Story, fact

Step = Callable[[Wallet], None]
CHARGE = UUID("3d1f0a52-0000-4000-8000-000000000001")


def opened() -> Story[Wallet]:
    return Story(Wallet.open(ORGANIZATION, "EUR", cause()))


def deposited(amount: str) -> Step:
    deposit = Deposit.make(ORGANIZATION, "bank-1", parse_amount(amount), cause())
    return lambda wallet: wallet.deposit(deposit, "EUR", cause(1))


def adjusted(amount_micros: int) -> Step:
    return lambda wallet: wallet.adjust(adjustment(amount_micros, reference="c-1"), "EUR", cause(2))


def charged(amount: str, kind: ChargeKind = "lookup") -> Step:
    wanted = charge(amount, kind=kind, transaction_id=CHARGE)
    return lambda wallet: wallet.charge(wanted, cause(3))


def refunded(amount: str) -> Step:
    return lambda wallet: wallet.refund(refund(amount, CHARGE), cause(4))


def test_a_wallet_fills_up_to_its_limit_and_not_a_micro_more() -> None:
    story = opened().given(adjusted(AMOUNT_MICROS_MAX - 1_000_000), deposited("1.00"))
    story.then(balance_micros=AMOUNT_MICROS_MAX)
    story.when(deposited("0.000001")).refused(NotPossible)
    story.when(adjusted(1)).refused(NotPossible)
    story.when(charged("0.000001")).then(fact(Wallet.Charged))


@pytest.mark.parametrize(
    "step", [adjusted(0), charged("0"), refunded("0")], ids=["correction", "charge", "refund"]
)
def test_a_movement_of_nothing_is_a_bug_of_the_caller(step: Step) -> None:
    opened().given(deposited("1.00")).when(step).refused(AssertionError)


def test_entries_are_all_made() -> None:
    entries = [charge("0.40"), refund("0.10", CHARGE), charge("0.60")]
    story = opened().given(deposited("1.00"))
    story.when(lambda wallet: wallet.book(entries, cause())).then(
        fact(Wallet.Charged, amount_micros=400_000, balance_micros=600_000),
        fact(Wallet.Refunded, amount_micros=100_000, balance_micros=700_000),
        fact(Wallet.Charged, amount_micros=600_000, balance_micros=100_000),
    )


@pytest.mark.parametrize(
    ("entries", "error"),
    [
        ([charge("0.60"), charge("0.50")], InsufficientBalance),
        ([charge("0.10"), charge("0.10", currency="USD")], ConfigError),
    ],
    ids=["sum", "currency"],
)
def test_none_of_the_entries_is_made_if_one_cannot_be(
    entries: list[Charge], error: type[Exception]
) -> None:
    story = opened().given(deposited("1.00"))
    story.when(lambda wallet: wallet.book(entries, cause())).refused(
        error, balance_micros=1_000_000
    )


@pytest.mark.parametrize(
    "step",
    [
        lambda wallet: wallet.charge(charge("0.10", currency="USD"), cause()),
        lambda wallet: wallet.refund(replace(refund("0.10", CHARGE), currency="USD"), cause()),
        lambda wallet: wallet.deposit(
            Deposit.make(ORGANIZATION, "bank-2", 5, cause()), "USD", cause()
        ),
        lambda wallet: wallet.adjust(adjustment(5), "USD", cause()),
    ],
    ids=["charge", "refund", "deposit", "adjustment"],
)
def test_nothing_moves_a_wallet_in_another_currency_than_its_own(step: Step) -> None:
    opened().given(deposited("1.00")).when(step).refused(ConfigError, balance_micros=1_000_000)
