"""A plan change that fails gives back what was not done, and may still learn of a removal."""

import pytest

from domain.accounts.paid_price import Repayment
from domain.ids import derive_id
from domain.links.plan_change import PlanChange
from tests.domain.build import cause
from tests.domain.build_links import (
    CHANGE,
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


def refund(index: int, amount_micros: int) -> Repayment:
    activation_id = derive_id("activation", CHANGE, index)
    return Repayment(amount_micros, derive_id("refund", activation_id))


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
