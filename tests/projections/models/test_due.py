"""Work that has not ended: whose it is, when it is due, and since when it has been under way."""

from datetime import datetime, timedelta
from itertools import chain
from uuid import UUID

import pytest

from domain.links.lost_order import LostOrder
from domain.links.network import Order
from tests.installation import Process, SetClock
from tests.projections.link_steps import ChangeSteps, LinkSteps, bought

INTENT_S, IDLE_S, SOON_S = 5, 2, 0.5


def due(process: Process, now: datetime, most: int = 99) -> list[tuple[str, UUID]]:
    owners, position = process.ask(process.due_list.owners, now)
    assert position == (process.log.head() if owners else 0)
    firsts = (process.ask(process.due_list.first, owner, now, most) for owner in owners)
    found = [*chain.from_iterable(firsts)]
    assert all(process.ask(process.due_list.knows, each.id) for each in found)
    return [(each.kind, each.id) for each in found]


def due_in_s(process: Process, work_id: UUID) -> float | None:
    """Return in how many seconds this work is due; None for work that has ended."""
    moments = {work.id: work.due_at for work in process.ask(process.due_list.all)}
    return (moments[work_id] - process.clock()).total_seconds() if work_id in moments else None


def oldest(process: Process) -> datetime | None:
    return process.ask(process.due_list.oldest)


def test_what_was_begun_before_the_clock_was_set_back_is_due(
    process: Process, organization_id: UUID, clock: SetClock
) -> None:
    clock.forward(hours=1)
    life = LinkSteps(process, organization_id)
    clock.forward(hours=-1)
    assert due(process, clock()) == [("link", life.id)]
    clock.forward(minutes=59, seconds=30)
    assert due(process, clock()) == []


def test_a_link_is_due_by_its_step_until_it_is_active(
    process: Process, organization_id: UUID, clock: SetClock
) -> None:
    life = LinkSteps(process, organization_id)
    assert due_in_s(process, life.id) == SOON_S
    for step, seconds in (
        (life.reserve, IDLE_S),
        (life.begin, INTENT_S),
        (life.begin, INTENT_S),
        (life.activate, None),
    ):
        clock.forward(minutes=1)
        step()
        assert due_in_s(process, life.id) == seconds


def test_a_lost_order_is_due_when_it_is_settled_and_then_until_all_is_given_back(
    process: Process, organization_id: UUID, clock: SetClock
) -> None:
    life = LinkSteps(process, organization_id, plan=bought(price="0"))
    link, cause = life.link, process.cause()
    link.request_order("simulated", cause.at + timedelta(seconds=INTENT_S), cause, life.id)
    lost = LostOrder.open(link, timedelta(minutes=10), cause)
    process.log.append(link)
    assert due_in_s(process, life.id) == INTENT_S
    link.fail("PROVISIONING_ERROR", {}, lost.opened.until, cause)
    process.log.append(link, lost)
    assert due_in_s(process, life.id) is None
    assert due_in_s(process, lost.id) == INTENT_S + 600 + 15
    assert due(process, clock()) == due(process, clock() + timedelta(minutes=10)) == []
    assert due(process, clock() + timedelta(minutes=11)) == [("lost_order", lost.id)]
    lost.record_found(Order("order-1", life.iccid, "item", cause.at), process.cause())
    process.log.append(lost)
    assert due_in_s(process, lost.id) == SOON_S
    lost.record_ended(process.cause(), taken_back=True)
    lost.record(LostOrder.Settled, process.cause())
    process.log.append(lost)
    assert due_in_s(process, lost.id) is None


def test_a_status_is_due_when_its_intent_has_run_out(
    process: Process, organization_id: UUID
) -> None:
    life = LinkSteps(process, organization_id).activate()
    for settled in ("suspended", "inactive", "active"):
        life.intend("suspended" if settled != "active" else "active")
        assert due_in_s(process, life.id) == INTENT_S
        life.settle(settled)
        assert due_in_s(process, life.id) is None
    life.see("inactive", process.clock()).store_lpa()
    assert due_in_s(process, life.id) is None


def test_a_plan_change_is_due_by_its_step_until_it_is_finished(
    process: Process, organization_id: UUID
) -> None:
    life = LinkSteps(process, organization_id).activate()
    first = life.link.current_activations[0].id
    change = life.change([first], [bought("One"), bought("Two")])
    steps = (
        (change.do, IDLE_S),
        (change.start, INTENT_S),
        (change.do, IDLE_S),
        (change.start, INTENT_S),
        (change.fail, SOON_S),
        (change.finish, None),
    )
    assert due_in_s(process, change.id) == SOON_S
    for step, seconds in steps:
        step()
        assert due_in_s(process, change.id) == seconds
    assert due_in_s(process, life.id) is None
    assert due_in_s(process, ChangeSteps(life, add=[bought("Three")]).do().id) is None


@pytest.mark.each_database
def test_work_comes_longest_due_first_and_bounded(
    process: Process, organization_id: UUID, clock: SetClock
) -> None:
    begun_at = clock.now
    active = LinkSteps(process, organization_id).activate()
    asked = LinkSteps(process, organization_id)
    intended = LinkSteps(process, organization_id).reserve().begin()
    clock.forward(seconds=1)
    change = active.change(add=[bought("Top-up")])
    work = [("link", asked.id), ("link", intended.id), ("plan_change", change.id)]
    assert due(process, begun_at + timedelta(seconds=5)) == work
    assert due(process, begun_at + timedelta(seconds=5), most=1) == [work[0], work[2]]
    assert due(process, begun_at + timedelta(seconds=4)) == [work[0], work[2]]
    assert due(process, begun_at + timedelta(seconds=1)) == work[:1]
    assert due(process, begun_at + timedelta(seconds=0.4)) == []


@pytest.mark.each_database
def test_the_oldest_work_is_that_which_began_first_not_that_which_moved_first(
    process: Process, organization_id: UUID, clock: SetClock
) -> None:
    assert oldest(process) is None
    began = clock.now
    life = LinkSteps(process, organization_id)
    process.projector.catch_up()
    later = clock.forward(seconds=3)
    other = LinkSteps(process, organization_id)
    life.reserve().begin()
    assert oldest(process) == began
    life.activate()
    assert oldest(process) == later
    other.fail()
    assert oldest(process) is None
