"""Money that goes back: a deposit that its payer takes back, what is then owed, and payouts."""

from collections.abc import Callable
from contextlib import suppress
from datetime import date
from typing import Any
from uuid import UUID

import pytest
from msgspec import structs

from domain.accounts.approvals import WaitsForApproval
from domain.accounts.spending import Spending
from domain.accounts.wallet import (
    SANDBOX_DEPOSIT,
    Booking,
    Deposit,
    Payout,
    Reversal,
    Wallet,
)
from domain.errors import InsufficientBalance, NotFound, NotPossible
from domain.ids import derive_id
from domain.months import month_of
from tests.domain.asking import together
from tests.domain.build import ORGANIZATION, START, adjustment, cause, charge, refund
from tests.installation import Process
from tests.operators import as_operator
from tests.story import Story, fact

DAY = date(2026, 2, 27)


def paid_in(micros: int, reference: str = "bank-1") -> Callable[[Wallet], None]:
    made = Deposit.make(ORGANIZATION, reference, micros, cause())
    return lambda wallet: wallet.enter(made, "EUR", cause())


def reversal(micros: int, deposit: str = "bank-1") -> Reversal:
    facts = {"reason": "a charge-back", "value_date": DAY, "deposit": deposit}
    return Reversal.make(ORGANIZATION, f"back of {deposit}", micros, cause(), **facts)


def entered(booking: Booking) -> Callable[[Wallet], None]:
    return lambda wallet: wallet.enter(booking, "EUR", cause())


def payout(micros: int) -> Callable[[Wallet], None]:
    facts = {"reason": "they leave", "value_date": DAY}
    return entered(Payout.make(ORGANIZATION, "out-1", micros, cause(), **facts))


def wallet(micros: int = 0) -> Story[Wallet]:
    story = Story(Wallet.open(ORGANIZATION, "EUR", cause()))
    return story.given(paid_in(micros)) if micros else story.given()


def owing(micros: int, paid: int = 100) -> Story[Wallet]:
    """A wallet whose only deposit was reversed when it had spent some of it."""
    spent = structs.replace(charge("0.000001"), amount_micros=micros)
    return wallet(paid).given(lambda its: its.book([spent], cause()), entered(reversal(paid)))


def test_a_reversal_takes_what_was_paid_in() -> None:
    made = reversal(60)
    shown = fact(
        Wallet.Reversed,
        amount_micros=60,
        balance_micros=40,
        transaction_id=made.transaction_id,
        description="a charge-back",
        metadata={"value_date": "2026-02-27", "deposit": "bank-1"},
        claim_micros=None,
    )
    wallet(100).when(entered(made)).then(shown, balance_micros=40, claim_micros=None)


def test_what_the_wallet_lacks_is_owed() -> None:
    made = reversal(100)
    story = wallet(100).given(lambda its: its.book([charge("0.00003")], cause()))
    story.when(entered(made)).then(
        fact(
            Wallet.ClaimChanged,
            amount_micros=30,
            balance_micros=100,
            claim_micros=30,
            transaction_id=derive_id("claim", made.transaction_id),
        ),
        fact(Wallet.Reversed, amount_micros=100, balance_micros=0, claim_micros=30),
        balance_micros=0,
        claim_micros=30,
        sequence=4,
    )


def test_whatever_comes_in_settles_the_claim_first() -> None:
    story = owing(30)
    story.when(paid_in(20, "bank-2")).then(
        fact(Wallet.Deposited, balance_micros=20, claim_micros=30),
        fact(Wallet.ClaimChanged, amount_micros=-20, balance_micros=0, claim_micros=10),
        claim_micros=10,
    )
    back = structs.replace(refund("1.00", ORGANIZATION), amount_micros=4)
    story.when(lambda its: its.book([back], cause())).then(
        fact(Wallet.Refunded, balance_micros=4),
        fact(Wallet.ClaimChanged, amount_micros=-4, balance_micros=0, claim_micros=6),
    )
    story.when(entered(adjustment(6))).then(
        fact(Wallet.Adjusted, balance_micros=6),
        fact(Wallet.ClaimChanged, amount_micros=-6, balance_micros=0, claim_micros=None),
        claim_micros=None,
    )
    story.when(paid_in(5, "bank-3")).then(fact(Wallet.Deposited, balance_micros=5))


def test_while_a_claim_is_open_nothing_is_bought_and_nothing_paid_out() -> None:
    story = owing(30)
    refusal = story.when(lambda its: its.book([charge("0.000001")], cause())).refused(
        InsufficientBalance, balance_micros=0
    )
    assert str(refusal).endswith(
        "0.00003 EUR is owed for a reversed deposit, which the next deposit settles first."
    )
    story.when(payout(1)).refused(InsufficientBalance)
    story.when(entered(adjustment(-1))).refused(InsufficientBalance)


def test_claims_add_up_and_a_new_limit_forgets_none() -> None:
    story = owing(30).given(paid_in(10, "bank-2"), entered(reversal(10, "bank-2")))
    limited = Spending(1_000_000, month_of(START), 0)
    story.when(lambda its: its.limit_spending(limited, cause())).then(
        fact(Wallet.SpendingLimited, claim_micros=30), claim_micros=30
    )
    story.when(paid_in(50, "bank-3")).then(
        fact(Wallet.Deposited, spending=limited),
        fact(Wallet.ClaimChanged, amount_micros=-30, balance_micros=20, spending=limited),
    )


def test_a_payout_is_never_more_than_there_is() -> None:
    story = wallet(100)
    story.when(payout(101)).refused(InsufficientBalance)
    story.when(payout(100)).then(
        fact(Wallet.PaidOut, amount_micros=100, balance_micros=0), claim_micros=None
    )


# By command.

FACTS = {"reason": "a charge-back", "value_date": DAY}


@pytest.fixture
def organization(process: Process) -> UUID:
    """Somebody who has paid in 1.00 as bank-1."""
    return process.organization("1.00")


def back(process: Process, owner: UUID, micros: int | None = None, **facts: Any) -> Booking:
    given = {"deposit": "bank-1", "reference": "back-1", **FACTS, **facts}
    reference = given.pop("reference")
    accounts, cause = process.accounts, process.cause()
    return accounts.move("reversal", owner, micros, reference, cause, **given)


def test_a_deposit_is_reversed_once(process: Process, organization: UUID) -> None:
    made = back(process, organization)
    assert (made.amount_micros, made.id) == (1_000_000, Reversal.id_of(organization, "bank-1"))
    assert back(process, organization).id == made.id
    for other, refusal in (
        ({"reference": "back-2"}, "was reversed with reference back-1"),
        ({"micros": 5}, "has another amount"),
        ({"reason": "else"}, "has another reason"),
        ({"value_date": date(2026, 3, 1)}, "has another value date"),
    ):
        with pytest.raises(NotPossible, match=refusal):
            back(process, organization, **other)  # type: ignore[arg-type]  # of each its own
    assert process.accounts.wallet(organization).balance_micros == 0
    assert process.audit().ok


def test_only_what_was_paid_in_is_reversed(process: Process, organization: UUID) -> None:
    other = process.organization("2.00", "Other")
    process.deposit(other, "5.00", "their-1")
    cause = process.cause()
    process.accounts.book_deposit(organization, 5, "played", cause, SANDBOX_DEPOSIT)
    for deposit in ("bank-9", "their-1", "played"):
        with pytest.raises(NotFound, match=f"there is no deposit {deposit}"):
            back(process, organization, deposit=deposit)
    with pytest.raises(NotPossible, match=r"deposit bank-1 was 1\.00"):
        back(process, organization, 1_000_001)
    assert process.accounts.wallet(organization).balance_micros == 1_000_005
    part = back(process, organization, 400_000)
    assert part.amount_micros == 400_000
    assert process.accounts.wallet(organization).balance_micros == 600_005


def test_of_many_who_reverse_at_once_one_does(process: Process, organization: UUID) -> None:
    process.look_up(organization, price_micros=200_000)
    won = list[UUID]()

    def attempt(number: int) -> None:
        with suppress(NotPossible):
            won.append(back(process, organization, reference=f"back-{number}").id)

    together(*(lambda n=n: attempt(n) for n in range(8)))
    assert len(won) == 1
    wallet = process.accounts.wallet(organization)
    assert (wallet.balance_micros, wallet.claim_micros) == (0, 200_000)
    assert process.audit().ok


def test_purchases_at_once_with_a_reversal_never_cost_more_than_there_is(
    process: Process, organization: UUID
) -> None:
    def buy() -> None:
        with suppress(InsufficientBalance):
            process.look_up(organization, price_micros=150_000)

    together(*[buy] * 4, lambda: back(process, organization), *[buy] * 4)
    wallet = process.accounts.wallet(organization)
    spent = sum(each.amount_micros for each in process.events(Wallet.Charged))
    assert wallet.balance_micros == 0
    assert (wallet.claim_micros or 0) == spent
    assert process.audit().ok


@pytest.mark.parametrize("kind", ["reversal", "payout"])
def test_what_waited_is_refused_when_it_cannot_be_done_any_more(
    process: Process, organization: UUID, kind: Any
) -> None:
    """The approval decides by what the wallet holds then, and by what was reversed meanwhile."""
    accounts = process.accounts
    anna, bert, carl = (as_operator(process, name) for name in ("anna", "bert", "carl"))
    accounts.approvals.set_limit(1, anna)
    more = {"deposit": "bank-1"} if kind == "reversal" else {}
    with pytest.raises(WaitsForApproval) as waits:
        accounts.move(kind, organization, 900_000, "r-1", anna, **FACTS, **more)
    proposal = waits.value.proposal.id
    if kind == "reversal":
        with pytest.raises(WaitsForApproval) as others:
            accounts.move(kind, organization, 800_000, "r-2", carl, **FACTS, **more)
        accounts.approve(others.value.proposal.id, bert)
        with pytest.raises(NotPossible, match="was reversed with reference r-2"):
            accounts.approve(proposal, bert)
    else:
        process.look_up(organization, price_micros=100_001)
        with pytest.raises(InsufficientBalance):
            accounts.approve(proposal, bert)
        accounts.move("deposit", organization, 1, "bank-2", anna)
        accounts.approve(proposal, bert)
        assert accounts.wallet(organization).balance_micros == 0
    told = {each.reason for each in process.audit().failures}
    assert told == {"None does this without the right keys"}, "which made the operators"
