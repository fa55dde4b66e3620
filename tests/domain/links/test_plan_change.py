"""A plan change: removals first, paid additions after them, what was not done is given back."""

from uuid import UUID

import pytest

from domain.accounts.paid_price import Repayment
from domain.ids import derive_id
from domain.links.plan_change import Addition, PlanChange, Removal, plan_change_id
from tests.domain.build import ORGANIZATION, cause
from tests.domain.build_links import (
    CHANGE,
    DEADLINE,
    LINK,
    SETTLED_AT,
    ChangeStep,
    addition_done,
    change_failed,
    finished,
    new_change,
    removal_done,
    started,
)
from tests.story import Story, fact

ADDED: tuple[ChangeStep, ...] = (started(), addition_done)
REMOVED: tuple[ChangeStep, ...] = (started(), removal_done)


def requested(*prices: str, removals: int = 0) -> Story[PlanChange]:
    return Story(new_change(*prices, removals=removals)).given()


def activation(index: int) -> UUID:
    return derive_id("activation", CHANGE, index)


def refund(index: int, amount_micros: int) -> Repayment:
    return Repayment(amount_micros, derive_id("refund", activation(index)))


def test_each_attempt_of_each_key_has_a_stream_of_its_own() -> None:
    ids = {plan_change_id(ORGANIZATION, key, n) for key in ("key-1", "key-2") for n in (1, 2)}
    assert len(ids) == 4
    assert plan_change_id(LINK, "key-1", 1) not in ids


def test_removals_come_first_and_then_additions_each_by_its_index() -> None:
    story = requested("2.00", "3.00", removals=2)
    change = story.aggregate
    steps: list[Removal | Addition] = [*change.requested.removals, *change.requested.additions]
    for index, step in enumerate(steps):
        assert change.next == step
        is_removal = index < 2
        begun = PlanChange.PlanRemovalStarted if is_removal else PlanChange.PlanAdditionStarted
        story.when(started()).then(fact(begun, index=index, attempt=1, until=DEADLINE), attempts=1)
        done = PlanChange.PlanRemovalDone if is_removal else PlanChange.PlanAdditionDone
        story.when(removal_done if is_removal else addition_done)
        story.then(fact(done, index=index), attempts=0, done=index + 1)
    assert (change.next, change.is_answered, change.failure) == (None, True, None)
    assert change.removed == change.requested.removals
    assert change.added == change.requested.additions
    story.when(finished).then(fact(PlanChange.Finished), finished_at=cause(4).at)
    assert change.kept_micros == 5_000_000


@pytest.mark.parametrize(
    ("history", "index", "refunds", "kept_micros"),
    [
        pytest.param((), 0, [refund(0, 2_000_000), refund(2, 3_000_000)], 0, id="at the removal"),
        pytest.param(
            REMOVED, 1, [refund(0, 2_000_000), refund(2, 3_000_000)], 0, id="at the first addition"
        ),
        pytest.param(
            (*REMOVED, *ADDED), 2, [refund(2, 3_000_000)], 2_000_000, id="at the free addition"
        ),
        pytest.param(
            (*REMOVED, *ADDED, *ADDED), 3, [refund(2, 3_000_000)], 2_000_000, id="at the last"
        ),
    ],
)
def test_a_failed_change_gives_back_the_price_of_all_that_it_did_not_add(
    history: tuple[ChangeStep, ...], index: int, refunds: list[Repayment], kept_micros: int
) -> None:
    story = requested("2.00", "0", "3.00", removals=1).given(*history, started())
    returned: list[list[Repayment]] = []
    story.when(lambda change: returned.append(change.fail("DOWN", SETTLED_AT, cause(3)))).then(
        fact(
            PlanChange.Failed,
            code="DOWN",
            index=index,
            refunds=refunds,
            settled_at=SETTLED_AT,
            reason=None,
        ),
        is_answered=True,
        kept_micros=kept_micros,
        kept_nothing=False,  # A removal may turn out to be done until it has finished.
        finished_at=None,
    )
    assert returned == [refunds]
    story.when(finished).then(
        fact(PlanChange.Finished), finished_at=cause(4).at, kept_nothing=index == 0
    )


def test_a_removal_that_was_done_after_all_is_noted_and_nothing_else() -> None:
    story = requested("2.00", removals=2).given(started(), change_failed(SETTLED_AT))
    story.when(removal_done).then(fact(PlanChange.PlanRemovalDone, index=0), kept_micros=0)
    assert story.aggregate.removed == []  # So its sender was told, and is told again.
    assert not story.aggregate.kept_nothing
    story.given(finished).when(removal_done).refused(AssertionError)


FAILED: tuple[ChangeStep, ...] = (started(), change_failed())


@pytest.mark.parametrize(
    ("prices", "removals", "history", "step"),
    [
        pytest.param(["1"], 0, (), removal_done, id="an addition is not removed"),
        pytest.param([], 1, (), addition_done, id="a removal is not added"),
        pytest.param(["1"], 0, ADDED, addition_done, id="nothing is done twice"),
        pytest.param(["1"], 0, ADDED, started(), id="nothing is begun after the last step"),
        pytest.param(["1"], 0, ADDED, change_failed(), id="what is done cannot fail"),
        pytest.param(["1"], 0, FAILED, change_failed(), id="it fails once"),
        pytest.param(["1"], 0, FAILED, started(), id="nothing is begun after a failure"),
        pytest.param(["1"], 0, FAILED, addition_done, id="nothing is added after its refund"),
        pytest.param(["1"], 0, (), finished, id="open steps are no end"),
        pytest.param(["1"], 0, (*ADDED, finished), finished, id="it finishes once"),
    ],
)
def test_what_no_worker_may_ask_for_is_a_bug(
    prices: list[str], removals: int, history: tuple[ChangeStep, ...], step: ChangeStep
) -> None:
    requested(*prices, removals=removals).given(*history).when(step).refused(AssertionError)
