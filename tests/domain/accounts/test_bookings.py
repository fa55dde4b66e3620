"""Payments and corrections of operators: what they are told is booked is in the log."""

from collections.abc import Callable
from dataclasses import replace
from uuid import UUID

import pytest

from domain.accounts.committer import Change, Committer
from domain.accounts.wallet import Deposit
from domain.errors import Conflict
from domain.log.aggregate import Root
from tests.installation import Process


class Forgetful(Committer):
    """Meets a twin that a failover loses right after."""

    def commit(self, wallet_id: UUID, change: Change, *others: Root) -> int:
        del wallet_id, change
        raise Conflict(others[0].id)


@pytest.mark.any_database
def test_a_payment_whose_twin_is_lost_is_not_called_booked(process: Process) -> None:
    organization = process.organization("1.00")
    accounts = replace(process.accounts, committer=Forgetful(process.log))
    with pytest.raises(Conflict):
        accounts.move("deposit", organization, 1_000_000, "bank-2", process.cause())
    assert not process.log.history(Deposit.id_of(organization, "bank-2"))


class Overtaken(Committer):
    """Lets a twin book first."""

    def __init__(self, process: Process, twin: Callable[[], object]) -> None:
        super().__init__(process.log)
        self._twin = twin

    def commit(self, wallet_id: UUID, change: Change, *others: Root) -> int:
        self._twin()
        return super().commit(wallet_id, change, *others)


@pytest.mark.any_database
def test_of_two_at_once_one_has_booked_the_payment_and_the_other_finds_it(process: Process) -> None:
    organization = process.organization("1.00")
    asked = (organization, 1_000_000, "bank-2", process.cause())
    first: list[bool] = []
    committer = Overtaken(process, lambda: first.append(process.accounts.book_deposit(*asked)[1]))
    late, is_new = replace(process.accounts, committer=committer).book_deposit(
        organization, 1_000_000, "bank-2", process.cause("request-2")
    )
    committer.close()
    assert (first, is_new) == ([True], False)
    assert late.id == Deposit.id_of(organization, "bank-2")
    assert process.accounts.wallet(organization).balance_micros == 2_000_000
