"""What waits: what is proposed and neither approved nor rejected."""

from uuid import UUID, uuid4

import pytest

from domain.accounts.approvals import WaitsForApproval
from domain.cause import Cause
from projections.engine.verify import differences
from tests.installation import Process
from tests.projections.looking import ask


@pytest.mark.any_database
@pytest.mark.parametrize("kind", ["adjustment", "deposit"])
@pytest.mark.parametrize("in_one_batch", [True, False])
def test_what_is_decided_waits_no_more(
    process: Process,
    in_one_batch: bool,  # noqa: FBT001  # It is one case of the table.
    kind: str,
) -> None:
    process.accounts.approvals.set_limit(1_000_000, process.cause())
    owner, (anna, bert) = process.organization("0.50"), (actor(process), actor(process))
    made = []
    for name in "abcd":
        made.append(proposed(process, kind, owner, name, anna))
        if not in_one_batch:
            process.projector.catch_up()
    process.accounts.reject(made[0], bert)
    process.accounts.approve(made[2], bert)
    assert ask(process, process.proposals.all) == [made[1], made[3]]
    parts = (process.log, process.views, process.positions, process.proposals)
    assert differences(*parts) == []


def proposed(process: Process, kind: str, owner: UUID, reference: str, anna: Cause) -> UUID:
    if kind == "adjustment":
        return process.accounts.adjust(owner, 2_000_000, "why", anna, reference=reference).id
    with pytest.raises(WaitsForApproval) as waits:
        process.accounts.deposit(owner, 2_000_000, reference, anna)
    return waits.value.proposal.id


def actor(process: Process) -> Cause:
    return Cause(process.clock(), "request-1", f"operator:{uuid4()}")
