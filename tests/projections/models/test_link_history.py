"""The transactions of one link: activation, top-ups, refunds, and the fees that count it."""

from uuid import UUID, uuid4

import pytest

from projections.models.transactions import Transaction
from tests.installation import Process, SetClock
from tests.projections.histories import look_up
from tests.projections.link_steps import LinkSteps, bought, charge_fee


@pytest.fixture
def life(process: Process, clock: SetClock) -> LinkSteps:
    """An active link; every other entry is a minute later, but for those of one commit."""
    assert process.clock is clock
    life = LinkSteps(process, process.organization(), "Van", bought("First", "4.00")).activate()
    clock.forward(minutes=1)
    return life


def history(
    life: LinkSteps, organization_id: UUID | None = None, offset: int = 0, limit: int = 99
) -> tuple[list[Transaction], int]:
    process = life.process
    process.projector.catch_up()
    with process.views.reading() as connection:
        return process.transactions.link_history(
            connection, organization_id or life.organization_id, life.id, offset=offset, limit=limit
        )


def told(life: LinkSteps) -> list[tuple[str, int]]:
    return [(each.kind, each.amount_micros) for each in history(life)[0]]


def test_a_link_begins_with_the_charge_of_its_activation(life: LinkSteps) -> None:
    (charge,), total = history(life)
    assert total == 1
    assert (charge.kind, charge.direction, charge.amount_micros) == (
        "activation",
        "debit",
        4_000_000,
    )
    assert charge.metadata["plan_name"] == "First"
    with life.process.views.reading() as connection:
        same = life.process.transactions.get(connection, life.organization_id, charge.id)
    assert charge == same


def test_every_kind_that_concerns_the_link_is_in_its_history_newest_first(
    life: LinkSteps, clock: SetClock
) -> None:
    process = life.process
    LinkSteps(process, life.organization_id).activate()  # What others cost is not.
    look_up(process, life.organization_id)
    change = life.change(add=[bought("Second", "1.00"), bought("Third", "2.00")])
    clock.forward(minutes=1)
    change.do().start().fail().finish()
    clock.forward(minutes=1)
    charge_fee(process, life.organization_id, "2026-03", [uuid4(), life.id])
    assert told(life) == [
        ("monthly_link_fee", 1_000_000),
        ("refund", 2_000_000),
        ("topup", 2_000_000),
        ("topup", 1_000_000),
        ("activation", 4_000_000),
    ]


def test_a_fee_is_in_the_history_of_each_of_its_links(life: LinkSteps) -> None:
    other = LinkSteps(life.process, life.organization_id, plan=bought("Free", "0")).activate()
    charge_fee(life.process, life.organization_id, "2026-03", [life.id, other.id])
    (fee,), total = history(other)
    assert total == 1
    assert fee.metadata["charged_link_ids"] == [str(life.id), str(other.id)]
    assert history(life)[0][0] == fee


@pytest.mark.any_database
def test_a_link_that_a_fee_names_twice_has_it_once(life: LinkSteps) -> None:
    charge_fee(life.process, life.organization_id, "2026-03", [life.id, life.id])
    assert [kind for kind, _ in told(life)] == ["monthly_link_fee", "activation"]


@pytest.mark.any_database
def test_a_failed_link_keeps_its_charge_and_its_refund(process: Process) -> None:
    failed = LinkSteps(process, process.organization()).reserve().fail().release()
    assert told(failed) == [("refund", 4_000_000), ("activation", 4_000_000)]


def test_the_moment_comes_before_the_sequence(life: LinkSteps, clock: SetClock) -> None:
    """After a clock was set back the newer entry has the older moment."""
    clock.forward(hours=-1)
    charge_fee(life.process, life.organization_id, "2026-03", [life.id])
    found, _ = history(life)
    assert [each.kind for each in found] == ["activation", "monthly_link_fee"]
    assert found[0].sequence < found[1].sequence


def test_pages_neither_repeat_nor_skip(life: LinkSteps) -> None:
    life.change(add=[bought(f"Plan {number}", "0.10") for number in range(7)])
    pages = [history(life, offset=offset, limit=3) for offset in range(0, 12, 3)]
    assert {total for _, total in pages} == {8}
    sequences = [each.sequence for found, _ in pages for each in found]
    assert sequences == sorted(set(sequences), reverse=True)
    assert len(sequences) == 8
    assert pages[-1][0] == []


@pytest.mark.any_database
def test_nobody_sees_the_history_of_others(life: LinkSteps) -> None:
    other = life.process.organization()
    assert history(life, other) == ([], 0)
    assert history(life, uuid4()) == ([], 0)
