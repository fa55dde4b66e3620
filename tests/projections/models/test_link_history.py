"""The transactions of one link: activation, top-ups, refunds, and the fees that count it."""

from uuid import UUID

import pytest

from projections.models.transactions import Transaction
from tests.installation import Process, SetClock
from tests.projections.link_steps import LinkSteps, bought, charge_fee


@pytest.fixture
def life(process: Process, clock: SetClock) -> LinkSteps:
    """An active link; every other entry is a minute later, but for those of one commit."""
    assert process.clock is clock
    life = LinkSteps(process, process.organization(), "Van", bought("First", "4.00")).activate()
    clock.forward(minutes=1)
    return life


def history(life: LinkSteps, owner: UUID | None = None) -> list[Transaction]:
    asked = (owner or life.organization_id, life.id)
    return life.process.ask(life.process.transactions.link_history, *asked, slice(0, 9))[0]


def test_a_link_that_a_fee_names_twice_has_it_once_and_for_its_owner_only(life: LinkSteps) -> None:
    charge_fee(life.process, life.organization_id, "2026-03", [life.id, life.id])
    assert [each.kind for each in history(life)] == ["monthly_link_fee", "activation"]
    assert history(life, life.process.organization()) == []


def test_the_moment_comes_before_the_sequence(life: LinkSteps, clock: SetClock) -> None:
    """After a clock was set back the newer entry has the older moment."""
    clock.forward(hours=-1)
    charge_fee(life.process, life.organization_id, "2026-03", [life.id])
    found = history(life)
    assert [each.kind for each in found] == ["activation", "monthly_link_fee"]
    assert found[0].sequence < found[1].sequence
