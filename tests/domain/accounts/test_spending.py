"""What may be spent in a calendar month: decided by the wallet, as its balance is."""

from collections.abc import Callable
from datetime import UTC, datetime

import pytest

from domain.accounts.spending import Spending
from domain.accounts.wallet import Deposit, Wallet
from domain.cause import Cause
from domain.errors import InsufficientBalance, SpendingLimit
from domain.money import parse_amount
from tests.domain.build import ORGANIZATION, adjustment, cause, charge, refund
from tests.story import Story, fact

MARCH, APRIL = cause(), Cause(datetime(2026, 4, 1, tzinfo=UTC), "request-2")
Step = Callable[[Wallet], None]


def deposited(amount: str) -> Step:
    deposit = Deposit.make(ORGANIZATION, "bank-1", parse_amount(amount), cause())
    return lambda wallet: wallet.deposit(deposit, "EUR", MARCH)


def charged(amount: str, at: Cause = MARCH, kind: str = "lookup") -> Step:
    return lambda wallet: wallet.charge(charge(amount, kind=kind), at)


def refunded(amount: str, at: Cause = MARCH) -> Step:
    return lambda wallet: wallet.refund(refund(amount, charge("1").transaction_id), at)


def limited(limit: str | None, spent: str = "0", month: str = "2026-03") -> Step:
    known = None if limit is None else spending(limit, spent, month)
    return lambda wallet: wallet.limit_spending(known, MARCH)


def spending(limit: str, spent: str, month: str = "2026-03") -> Spending:
    return Spending(parse_amount(limit), month, parse_amount(spent))


def wallet(*steps: Step) -> Story[Wallet]:
    return Story(Wallet.open(ORGANIZATION, "EUR", cause())).given(deposited("10.00"), *steps)


def test_a_limit_moves_nothing_and_its_last_micro_can_be_spent() -> None:
    story = wallet().when(limited("1.00"))
    story.then(
        fact(Wallet.SpendingLimited, sequence=1, balance_micros=10_000_000),
        balance_micros=10_000_000,
        sequence=1,
    )
    story.when(charged("1.00")).then(
        fact(Wallet.Charged, spending=spending("1.00", "1.00")), spending=spending("1.00", "1.00")
    )
    story.when(charged("0.000001")).refused(SpendingLimit, balance_micros=9_000_000)


def test_the_limit_is_told_before_the_balance() -> None:
    wallet(limited("1.00")).when(charged("11.00")).refused(SpendingLimit)
    wallet(limited("12.00")).when(charged("11.00")).refused(InsufficientBalance)


def test_charges_of_one_command_are_refused_by_their_sum() -> None:
    entries = [charge("0.60"), charge("0.50")]
    wallet(limited("1.00")).when(lambda it: it.book(entries, MARCH)).refused(SpendingLimit)
    story = wallet(limited("1.10")).when(lambda it: it.book(entries, MARCH))
    each = [fact(Wallet.Charged, spending=spending("1.10", spent)) for spent in ("0.60", "1.10")]
    story.then(*each, spending=spending("1.10", "1.10"))


def test_a_refund_gives_room_back_and_what_is_paid_in_does_not() -> None:
    story = wallet(limited("1.00", "1.00")).when(refunded("0.25"))
    story.then(fact(Wallet.Refunded, spending=spending("1.00", "0.75")))
    story.given(deposited("5.00"), lambda it: it.adjust(adjustment(-1), "EUR", MARCH))
    story.when(charged("0.25")).then(fact(Wallet.Charged, spending=spending("1.00", "1.00")))


def test_what_comes_back_of_an_earlier_month_may_be_spent_again() -> None:
    story = wallet(limited("1.00")).given(refunded("0.50", APRIL))
    story.when(charged("1.500001", APRIL)).refused(SpendingLimit)
    story.when(charged("1.50", APRIL)).then(
        fact(Wallet.Charged, spending=spending("1.00", "1.00", "2026-04"))
    )


def test_a_monthly_fee_is_never_refused_and_counts() -> None:
    story = wallet(limited("1.00", "0.90"))
    story.when(charged("0.50", kind="monthly_link_fee")).then(
        fact(Wallet.Charged, spending=spending("1.00", "1.40"))
    )
    story.when(charged("0.01")).refused(SpendingLimit)


def test_a_month_begins_with_nothing_spent_and_a_clock_set_back_begins_none() -> None:
    story = wallet(limited("1.00", "1.00"))
    assert story.aggregate.spending.left_micros(APRIL.at) == 1_000_000
    story.when(charged("0.40", APRIL)).then(
        fact(Wallet.Charged, spending=spending("1.00", "0.40", "2026-04"))
    )
    story.when(charged("0.70", MARCH)).refused(SpendingLimit)
    story.when(charged("0.60", MARCH)).then(
        fact(Wallet.Charged, spending=spending("1.00", "1.00", "2026-04"))
    )


@pytest.mark.parametrize("at", [MARCH, APRIL], ids=["this month", "the next"])
def test_with_a_limit_of_zero_nothing_can_be_bought(at: Cause) -> None:
    wallet(limited("0")).when(charged("0.01", at)).refused(SpendingLimit)
