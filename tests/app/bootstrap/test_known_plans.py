"""A plan is read each time it is sold; a reply may show it as of a second ago."""

from datetime import timedelta

import pytest

from app.bootstrap import known_plans
from app.bootstrap.known_plans import KnownPlans
from domain.catalogue.plan import PlanTerms
from domain.cause import Cause
from tests.installation import Installation, Process, SetClock
from tests.plan_files import import_plans, plan, stored

pytestmark = pytest.mark.any_database

CAUSE = Cause(SetClock()(), "test")


@pytest.fixture
def clock() -> SetClock:
    return SetClock(CAUSE.at)


@pytest.fixture
def plans(process: Process, monkeypatch: pytest.MonkeyPatch) -> KnownPlans:
    monkeypatch.setattr(known_plans, "KEPT_S", 60.0)
    import_plans(process, plan())
    process.projector.catch_up()
    return KnownPlans(process.views, process.plans, process.clock)


def offered(process: Process, plans: KnownPlans) -> PlanTerms | None:
    return plans.offer(process.organization(), stored(process).id)


def test_what_was_offered_is_not_read_again(
    process: Process, plans: KnownPlans, monkeypatch: pytest.MonkeyPatch
) -> None:
    terms = offered(process, plans)
    monkeypatch.delattr(type(process.plans), "by_id")
    assert plans.terms_of({stored(process).id}) == {stored(process).id: terms}


def test_who_buys_is_told_of_a_change_at_once_and_who_reads_then_too(
    process: Process, plans: KnownPlans
) -> None:
    before, plan_id = offered(process, plans), stored(process).id
    import_plans(process, plan(id=str(plan_id), data_mb=5))
    process.projector.catch_up()
    assert plans.terms_of([plan_id]) == {plan_id: before}
    now = offered(process, plans)
    assert now.data_mb == 5
    assert plans.terms_of([plan_id]) == {plan_id: now}


def test_after_a_second_it_is_read_anew(
    process: Process, plans: KnownPlans, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan_id = stored(process).id
    plans.terms_of([plan_id])
    import_plans(process, plan(id=str(plan_id), data_mb=5))
    process.projector.catch_up()
    monkeypatch.setattr(known_plans, "KEPT_S", 0.0)
    assert plans.terms_of([plan_id])[plan_id].data_mb == 5


def test_it_does_not_grow_without_end(
    process: Process, plans: KnownPlans, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(known_plans, "PLANS_MAX", 2)
    for number in range(5):
        import_plans(process, plan(f"Plan {number}", provider_plan_id=f"p-{number}"))
    process.projector.catch_up()
    with process.views.reading() as connection:
        ids = [row.id for row in process.plans.all(connection)]
    assert plans.terms_of(ids).keys() == set(ids)
    assert len(plans._known) <= 2  # noqa: SLF001  # What it holds.


def test_what_a_buyer_pays_is_decided_by_the_time_of_the_purchase(
    installation: Installation, clock: SetClock
) -> None:
    process = installation.process(clock)
    import_plans(process, plan())
    starts_at, later = clock.now + timedelta(hours=1), 5_000_000
    process.catalogue.price(stored(process).id, later, CAUSE, starts_at=starts_at, below_cost=False)
    process.projector.catch_up()
    for now, price_micros in (
        (starts_at - timedelta(microseconds=1), 4_500_000),
        (starts_at, later),
    ):
        clock.now = now
        terms = offered(process, process.known_plans)
        assert terms.retail_price_micros == price_micros
