"""What waits: what is proposed and neither approved nor rejected."""

from dataclasses import replace
from datetime import timedelta
from uuid import UUID

import pytest

from domain.accounts.approvals import WaitsForApproval
from domain.cause import Cause
from projections.engine.verify import differences
from tests.installation import Process
from tests.operators import as_operator


@pytest.mark.parametrize("kind", ["adjustment", "deposit"])
@pytest.mark.parametrize("in_one_batch", [True, False])
def test_what_is_decided_waits_no_more(
    process: Process,
    in_one_batch: bool,  # noqa: FBT001  # It is one case of the table.
    kind: str,
) -> None:
    process.accounts.approvals.set_limit(1_000_000, process.cause())
    anna, bert = (as_operator(process, name) for name in ("anna", "bert"))
    owner = process.organization("0.50")
    made = []
    for name in "abcd":
        made.append(proposed(process, kind, owner, name, anna))
        if not in_one_batch:
            process.projector.catch_up()
    process.accounts.reject(made[0], bert)
    process.accounts.approve(made[2], bert)
    assert process.ask(process.proposals.all) == [made[1], made[3]]
    assert differences(process.source, process.proposals) == []


def proposed(process: Process, kind: str, owner: UUID, reference: str, anna: Cause) -> UUID:
    accounts = process.accounts
    with pytest.raises(WaitsForApproval) as waits:
        _ = (
            accounts.move("adjustment", owner, 2_000_000, reference, anna, reason="why")
            if kind == "adjustment"
            else accounts.move("deposit", owner, 2_000_000, reference, anna)
        )
    return waits.value.proposal.id


@pytest.mark.each_database
def test_what_is_moved_alone_counts_by_operator_and_day(process: Process) -> None:
    owner, accounts = process.organization(), process.accounts
    accounts.approvals.set_limit(1_000_000, process.cause())
    anna, bert = (as_operator(process, name) for name in ("anna", "bert"))
    accounts.move("deposit", owner, 600_000, "d-1", anna)
    accounts.move("adjustment", owner, -400_000, "a-1", anna, reason="why")
    accounts.move("deposit", owner, 900_000, "d-1b", bert)
    accounts.book_deposit(owner, 5_000_000, "d-2", replace(anna, actor="client:cl_1"))
    accounts.approve(proposed(process, "deposit", owner, "d-3", anna), bert)
    moved = [accounts.moved_micros(each.actor, anna.at.date()) for each in (anna, bert)]
    assert moved == [1_000_000, 900_000]
    assert differences(process.source, process.proposals) == []
    later = replace(anna, at=anna.at + timedelta(days=1))
    with pytest.raises(WaitsForApproval):  # One more micro-unit on this day is too much.
        accounts.move("deposit", owner, 1, "d-4", anna)
    with pytest.raises(WaitsForApproval):
        accounts.move("adjustment", owner, 1, "a-4", anna, reason="why")
    accounts.move("deposit", owner, 1, "d-5", later)
    accounts.move("adjustment", owner, 1, "a-5", later, reason="why")
