"""The demo: what it makes, once, in whatever currency."""

import json
from uuid import UUID

import pytest

from app.demo import PLANS, prepare_demo
from domain.plan import Plan, PlanTerms
from tests.installation import Installation, Process

SAMPLES = json.loads(PLANS.read_bytes())["plans"]


def catalogue(process: Process) -> dict[UUID, PlanTerms]:
    process.projector.catch_up()
    with process.views.reading() as connection:
        return {row.id: row.terms for row in process.plans.all(connection)}


def test_the_sample_plans_are_imported_once(process: Process) -> None:
    first = prepare_demo(process)
    plans, head = catalogue(process), process.log.head()
    assert sorted(each.name for each in plans.values()) == sorted(e["name"] for e in SAMPLES)
    second = prepare_demo(process)
    assert catalogue(process) == plans
    assert process.log.head() == head + 1, "only the secret is new"
    assert (second.organization, second.balance) == (first.organization, "100.00")


def test_the_demo_organization_sees_every_sample(process: Process) -> None:
    demo = prepare_demo(process)
    catalogue(process)
    with process.views.reading() as connection:
        seen = process.plans.compatible(connection, demo.organization, None)
    assert len(seen) == len(SAMPLES)


@pytest.mark.parametrize("currency", ["EUR", "JPY"])
def test_a_demo_in_another_currency_has_the_same_figures(
    installation: Installation, currency: str
) -> None:
    installation.environment["CURRENCY"] = currency
    process = installation.process()
    assert prepare_demo(process).currency == currency
    plans = catalogue(process).values()
    assert {each.currency for each in plans} == {currency}
    assert len(plans) == len(SAMPLES)


def test_what_operators_have_switched_off_stays_off(process: Process) -> None:
    prepare_demo(process)
    plan_id = next(iter(catalogue(process)))
    process.catalogue.switch(plan_id, process.cause(), enabled=False)
    prepare_demo(process)
    assert not process.log.get(Plan, plan_id).enabled
