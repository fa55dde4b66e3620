"""A deposit is one payment, known by the organization and its reference."""

import pytest

from domain.accounts.wallet import Deposit, deposit_id
from domain.ids import derive_id
from tests.domain.build import ORGANIZATION, TRANSACTION, cause
from tests.story import Story, fact


def test_a_deposit_remembers_what_was_paid() -> None:
    Story(Deposit.make(ORGANIZATION, "bank-1", 5_000, cause())).then(
        fact(Deposit.Made, organization_id=ORGANIZATION, reference="bank-1", amount_micros=5_000),
        organization_id=ORGANIZATION,
        reference="bank-1",
        amount_micros=5_000,
        transaction_id=derive_id("transaction", deposit_id(ORGANIZATION, "bank-1")),
    )


def test_the_same_reference_is_the_same_stream_whatever_the_amount() -> None:
    first = Deposit.make(ORGANIZATION, "bank-1", 5_000, cause())
    again = Deposit.make(ORGANIZATION, "bank-1", 6_000, cause(5, "request-2"))
    assert first.id == again.id
    assert first.transaction_id == again.transaction_id


def test_another_reference_or_organization_is_another_deposit() -> None:
    ids = {
        deposit_id(ORGANIZATION, "bank-1"),
        deposit_id(ORGANIZATION, "bank-2"),
        deposit_id(TRANSACTION, "bank-1"),
    }
    assert len(ids) == 3


@pytest.mark.parametrize("amount_micros", [0, -1])
def test_a_payment_of_nothing_is_a_bug_of_the_caller(amount_micros: int) -> None:
    with pytest.raises(AssertionError):
        Deposit.make(ORGANIZATION, "bank-1", amount_micros, cause())
