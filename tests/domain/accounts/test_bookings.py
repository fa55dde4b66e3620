"""Payments and corrections of operators: what they are told is booked is in the log."""

from dataclasses import replace
from uuid import UUID

import pytest

from domain.accounts.committer import Change, Committer
from domain.accounts.wallet import deposit_id
from domain.errors import Conflict
from domain.log.aggregate import Root
from tests.installation import Process


class Forgetful(Committer):
    """Meets a twin that a failover loses right after."""

    def commit(self, wallet_id: UUID, change: Change, *others: Root) -> int:
        del wallet_id, change
        raise Conflict(others[0].id)


def test_a_payment_whose_twin_is_lost_is_not_called_booked(process: Process) -> None:
    organization = process.organization("1.00")
    accounts = replace(process.accounts, committer=Forgetful(process.log))
    with pytest.raises(Conflict):
        accounts.deposit(organization, 1_000_000, "bank-2", process.cause())
    assert not process.log.history(deposit_id(organization, "bank-2"))
