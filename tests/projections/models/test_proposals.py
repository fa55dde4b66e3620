"""Adjustments that wait: those that are proposed and neither approved nor rejected."""

from uuid import uuid4

import pytest

from domain.cause import Cause
from projections.engine.verify import differences
from tests.installation import Installation, Process


@pytest.mark.any_database
@pytest.mark.parametrize("in_one_batch", [True, False])
def test_what_is_decided_waits_no_more(installation: Installation, in_one_batch: bool) -> None:  # noqa: FBT001  # It is one case of the table.
    installation.environment["ADJUSTMENT_APPROVAL_ABOVE"] = "1"
    process = installation.process()
    owner, (anna, bert) = process.organization("5.00"), (actor(process), actor(process))
    made = []
    for name in "abcd":
        made.append(process.accounts.adjust(owner, 2_000_000, "why", anna, reference=name))
        if not in_one_batch:
            process.projector.catch_up()
    process.accounts.reject(made[0].id, bert)
    process.accounts.approve(made[2].id, bert)
    process.projector.catch_up()
    with process.views.reading() as connection:
        assert process.proposals.all(connection) == [made[1].id, made[3].id]
    parts = (process.log, process.views, process.positions, process.proposals)
    assert differences(*parts) == []


def actor(process: Process) -> Cause:
    return Cause(process.clock(), "request-1", f"operator:{uuid4()}")
