"""Payments and corrections of operators: what they are told is booked is in the log."""

from typing import Any

import pytest

from domain.accounts.wallet import Deposit
from domain.errors import Conflict
from tests.installation import Process


def test_a_payment_whose_twin_is_lost_is_not_called_booked(
    process: Process, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It meets a twin that a failover loses right after."""
    organization = process.organization("1.00")

    def commit(_wallet_id: object, _change: object, deposit: Deposit) -> int:
        raise Conflict(deposit.id)

    monkeypatch.setattr(process.committer, "commit", commit)
    with pytest.raises(Conflict):
        process.accounts.move("deposit", organization, 1_000_000, "bank-2", process.cause())
    assert not process.log.history(Deposit.id_of(organization, "bank-2"))


def test_of_two_at_once_one_has_booked_the_payment_and_the_other_finds_it(
    process: Process, monkeypatch: pytest.MonkeyPatch
) -> None:
    organization = process.organization("1.00")
    asked, commit = (organization, 1_000_000, "bank-2"), process.committer.commit
    first: list[bool] = []

    def slower(*what: Any) -> int:
        monkeypatch.undo()
        first.append(process.accounts.book_deposit(*asked, process.cause())[1])
        return commit(*what)

    monkeypatch.setattr(process.committer, "commit", slower)
    late, is_new = process.accounts.book_deposit(*asked, process.cause("request-2"))
    assert (first, is_new) == ([True], False)
    assert late.id == Deposit.id_of(organization, "bank-2")
    assert process.accounts.wallet(organization).balance_micros == 2_000_000
