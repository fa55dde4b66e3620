"""Commands that give money back: what happens at once, what waits, and what is refused.

What a wallet then owes is in `test_wallet_machine`.
"""

from contextlib import suppress
from datetime import date
from typing import Any
from uuid import UUID

import pytest

from domain.accounts.approvals import WaitsForApproval
from domain.accounts.wallet import SANDBOX_DEPOSIT, Booking, Reversal, Wallet
from domain.errors import InsufficientBalance, NotFound, NotPossible
from tests.domain.asking import together
from tests.installation import Process
from tests.operators import as_operator

FACTS = {"reason": "a charge-back", "value_date": date(2026, 2, 27)}


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


@pytest.mark.each_database
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


@pytest.mark.each_database
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
