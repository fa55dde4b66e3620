"""Balances as read: the newest entry of each wallet."""

from collections.abc import Callable
from uuid import UUID, uuid4

import pytest

from projections.models.wallets import WalletRow
from tests.installation import Process
from tests.projections.histories import DOWN, create_job, finish_job, look_up

Step = Callable[[], object]


def row(process: Process, organization_id: UUID) -> WalletRow | None:
    with process.views.reading() as connection:
        return process.wallets.get(connection, organization_id)


def test_a_wallet_without_entries_is_empty(process: Process) -> None:
    organization_id = process.organization("0")
    process.projector.catch_up()
    assert row(process, organization_id) == WalletRow(organization_id, "USD", 0, 0)


@pytest.mark.parametrize("in_one_batch", [True, False])
def test_every_kind_of_entry_moves_the_balance(process: Process, in_one_batch: bool) -> None:  # noqa: FBT001  # It is one case of the table.
    organization_id = process.organization("1.00")
    steps: list[tuple[Step, tuple[int, int]]] = [
        (lambda: look_up(process, organization_id), (995_000, 2)),
        (lambda: adjust(process, organization_id, -95_000), (900_000, 3)),
        (lambda: run_job(process, organization_id, ["+14155550101", DOWN]), (895_000, 5)),
    ]
    for step, (balance_micros, sequence) in steps:
        step()
        if in_one_batch and sequence < 5:
            continue
        process.projector.catch_up()
        expected = WalletRow(organization_id, "USD", balance_micros, sequence)
        assert row(process, organization_id) == expected


def adjust(process: Process, organization_id: UUID, micros: int) -> None:
    process.accounts.adjust(
        organization_id, micros, "a fee", process.cause(), reference=str(uuid4())
    )


def run_job(process: Process, organization_id: UUID, wanted: list[str]) -> None:
    finish_job(process, create_job(process, organization_id, wanted))


@pytest.mark.any_database
def test_an_organization_without_a_wallet_has_none(process: Process) -> None:
    organization_id = process.organization("")
    process.projector.catch_up()
    assert row(process, organization_id) is None
    assert row(process, uuid4()) is None
