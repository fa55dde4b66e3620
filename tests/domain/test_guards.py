"""What nobody may ask of an aggregate: it is a bug or a lost race, and records nothing."""

from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar
from uuid import UUID, uuid4

import pytest

from domain.accounts.monthly_fee import MonthlyFee
from domain.errors import Conflict
from domain.ids import derive_id
from domain.links.esim import Esim
from domain.links.network import Endpoint
from domain.log.aggregate import Root
from domain.lookups.bulk_job import STARTS_MAX, BulkJob
from tests.domain import build_links as steps
from tests.domain.build import ORGANIZATION, bulk_job, cause, sealed
from tests.domain.build_links import ACTIVE, ICCID, LINK, SETTLED_AT, bought, new_link

R = TypeVar("R", bound=Root)
OTHER = uuid4()
FIRST = derive_id("activation", LINK, 0)
SOON = cause(20).at


def after(made: R, *done: Callable[[Any], object]) -> R:
    for step in done:
        step(made)
    return made


def esim(*done: Callable[[Any], object]) -> Esim:
    return after(Esim.register("simulated", ICCID, cause()), *done)


def taken(its: Esim, link_id: UUID = LINK) -> None:
    its.reserve(link_id, cause(1))


def kept_back(its: Esim, link_id: UUID = LINK) -> None:
    its.quarantine(link_id, SETTLED_AT, cause(2))


def freed(its: Esim, link_id: UUID = LINK) -> None:
    its.release(link_id, cause(3))


HELD = [(esim, [taken], taken), (esim, [taken], partial(taken, link_id=OTHER))]
HELD += [(esim, [taken, kept_back], partial(taken, link_id=OTHER))]
HELD += [
    (esim, history, partial(step, link_id=OTHER))
    for history in ([], [taken], [taken, freed])
    for step in (kept_back, freed)
]


def link(*done: Callable[[Any], object]) -> Root:
    return after(new_link(), *done)


CHANGING = (*ACTIVE, steps.change_opened())
FOREIGN = Endpoint(steps.ENDPOINT_ID, ICCID, str(OTHER))
LINKS = [
    (
        link,
        [steps.reserved, steps.begun()],
        lambda it: it.activate(FOREIGN, steps.LPA, cause(3), adopted=True),
    ),
    (link, CHANGING, steps.plan_added(FIRST, bought())),
    (link, [*CHANGING, steps.plan_removed(FIRST)], steps.plan_added(FIRST, bought())),
    (link, [*CHANGING, steps.plan_removed(FIRST)], steps.plan_removed(FIRST)),
    (link, CHANGING, steps.plan_removed(OTHER)),
    (link, ACTIVE, steps.used(OTHER, 50)),
    (link, ACTIVE, steps.ends_soon(OTHER, SOON)),
    (link, ACTIVE, steps.plan_started(OTHER, SOON)),
    (link, ACTIVE, steps.plan_ended(OTHER)),
]


def addition(*done: Callable[[Any], object]) -> Root:
    return after(steps.new_change("1"), *done)


def removal(*done: Callable[[Any], object]) -> Root:
    return after(steps.new_change(removals=1), *done)


ADDED = [steps.started(), steps.addition_done]
FAILED = [steps.started(), steps.change_failed()]
LATE = [steps.started(), steps.change_failed(SETTLED_AT), steps.removal_done, steps.finished]
CHANGES = [
    (addition, [], steps.removal_done),
    (removal, [], steps.addition_done),
    (removal, LATE, steps.removal_done),
    *((addition, ADDED, step) for step in (*ADDED, steps.change_failed())),
    *((addition, FAILED, step) for step in (*ADDED, steps.change_failed())),
    (addition, [], steps.finished),
    (addition, [*ADDED, steps.finished], steps.finished),
]


def job(*done: Callable[[Any], object]) -> BulkJob:
    """Five numbers in slices of two."""
    return after(bulk_job(5, 2), *done)


def started(index: int) -> Callable[[BulkJob], object]:
    return lambda it: it.start_slice(index, cause(1))


def completed(slice_index: int, *indexes: int) -> Callable[[BulkJob], object]:
    return lambda it: it.complete_items(slice_index, indexes, sealed(), cause(2))


def failed(slice_index: int, *indexes: int) -> Callable[[BulkJob], object]:
    return lambda it: it.fail_items(slice_index, indexes, ["down"] * len(indexes), cause(2))


def cancelled(it: BulkJob) -> object:
    return it.cancel(cause(4))


def ended(it: BulkJob) -> None:
    for each in range(3):
        completed(each, *it.items_of(each))(it)
    it.finish_if_settled(cause(3))


def at_a_price_and_free(it: BulkJob) -> object:
    facts = {"organization_id": ORGANIZATION, "total_count": 1, "slice_size": 1, "price": None}
    return BulkJob.create(it.id, cause(), item_price_micros=1, personal=sealed(), **facts)  # type: ignore[arg-type]  # As they come.


JOBS = [
    *((job, [], started(index)) for index in (3, 1_000, -1, -3)),
    (job, [started(1)] * STARTS_MAX, started(1)),
    *((job, [cancelled], it) for it in (started(0), completed(0, 0), failed(0, 0), cancelled)),
    (job, [ended], cancelled),
    *(
        (job, [first], second)
        for first in (completed(0, 0), failed(0, 0))
        for second in (completed(0, 0), failed(0, 0), completed(0, 1, 0))
    ),
    *((job, [], it(0, *items)) for it in (completed, failed) for items in ((), (0, 0))),
    *((job, [], it) for it in (completed(2, 5), completed(0, -1), at_a_price_and_free)),
    (job, [], lambda it: it.fail_items(0, [0, 1], ["one error"], cause())),
]


def fee(micros: int = 1, links: int = 1) -> MonthlyFee:
    return MonthlyFee.fall_due(
        ORGANIZATION,
        "2026-03",
        cause(),
        fee_micros=micros,
        link_ids=[uuid4() for _ in range(links)],
        currency="EUR",
    )


def charged(due: MonthlyFee) -> None:
    due.record_charged(cause(1))


FEES: list[Any] = [
    (fee, [charged], charged),
    *((fee, [], lambda _, of=of: fee(*of)) for of in ((0, 1), (-1, 1), (1, 0))),
]
GUARDS: list[Any] = [*HELD, *LINKS, *CHANGES, *JOBS, *FEES]


@pytest.mark.parametrize(("make", "history", "step"), GUARDS)
def test_what_nobody_may_ask_for_is_a_bug_or_a_lost_race_and_records_nothing(
    make: Callable[[], Root], history: list[Callable[[Any], object]], step: Callable[[Any], object]
) -> None:
    made = after(make(), *history)
    before = len(made.pending_events)
    with pytest.raises((AssertionError, KeyError, Conflict)):
        step(made)
    assert len(made.pending_events) == before
