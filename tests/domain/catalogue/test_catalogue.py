"""The catalogue: imports that are all or nothing and may be repeated, and changes one by one."""

from typing import Any
from uuid import uuid4

import pytest

from domain.catalogue.commands import Imported
from domain.errors import NotFound, NotPossible
from tests.installation import Process
from tests.plan_files import covering, import_plans, plan, profile, refusal, stored, topics

pytestmark = pytest.mark.any_database

NOTHING = Imported(0, 0, 0)


def test_a_first_import_publishes_every_plan_in_one_go(process: Process) -> None:
    owner = process.organization("")
    head = process.log.head()
    made = import_plans(
        process,
        plan("Germany 1 GB"),
        plan("Germany 1 GB", organization_id=str(owner), enabled=False),
        plan("World", coverage=covering("DE", "US"), excluded_organizations=[str(owner)]),
    )
    assert made == Imported(3, 0, 0)
    assert topics(process, head) == ["plan.published"] * 3
    shared, own, world = (
        stored(process),
        stored(process, owner=owner),
        stored(process, "World"),
    )
    assert (shared.organization_id, shared.enabled, shared.excluded) == (None, True, set())
    assert (own.organization_id, own.enabled) == (owner, False)
    assert (world.terms.coverage_type, world.excluded) == ("global", {owner})
    assert world.terms.retail_price_micros == 4_500_000


def test_an_import_says_which_request_caused_it(process: Process) -> None:
    import_plans(process, plan(), request_id="cli-1")
    assert process.log.read(0, 1)[0].event.request_id == "cli-1"


def test_the_same_file_again_changes_nothing(process: Process) -> None:
    owner = process.organization("")
    file = [
        plan("A", organization_id=str(owner)),
        plan("B", provider_plan_id=None, excluded_organizations=[str(owner)]),
        plan("C", id=str(uuid4()), enabled=False),
    ]
    assert import_plans(process, *file) == Imported(3, 0, 0)
    head = process.log.head()
    for _ in range(2):
        assert import_plans(process, *file) == Imported(0, 0, 3)
    assert process.log.head() == head
    assert import_plans(process) == NOTHING


def test_plans_that_differ_are_changed_and_those_that_are_missing_stay(process: Process) -> None:
    import_plans(process, plan("A"), plan("B"), plan("C"))
    head = process.log.head()
    assert import_plans(process, plan("D"), plan("B"), plan("A", retail_price="4.51")) == (
        Imported(1, 1, 1)
    )
    assert topics(process, head) == ["plan.published", "plan.changed"]
    assert stored(process, "A").terms.retail_price_micros == 4_510_000
    assert stored(process, "C").enabled


@pytest.mark.parametrize(
    "change",
    [
        {"name": "Another name"},
        {"retail_price": "4.500001"},
        {"data_mb": 999},
        {"validity_days": 8},
        {"coverage_type": "regional"},
        {"sponsor_profiles": []},
        {"sponsor_profiles": [profile("sp-1"), profile("sp-2")]},
        {"coverage": covering("DE", "FR")},
        {"coverage": covering("DE", operators=2)},
    ],
)
def test_every_term_can_change(process: Process, change: dict[str, Any]) -> None:
    import_plans(process, plan())
    changed = plan() | change
    assert import_plans(process, changed) == Imported(0, 1, 0)
    assert import_plans(process, changed) == Imported(0, 0, 1)
    assert topics(process) == ["plan.published", "plan.changed"]


def test_what_a_file_leaves_out_stays_as_operators_have_set_it(process: Process) -> None:
    hidden_from = process.organization("")
    import_plans(process, plan())
    published = stored(process)
    process.catalogue.switch(published.id, process.cause(), enabled=False)
    process.catalogue.exclude(published.id, hidden_from, process.cause())
    assert import_plans(process, plan(data_mb=5)) == Imported(0, 1, 0)
    now = stored(process)
    assert (now.terms.data_mb, now.enabled, now.excluded) == (5, False, {hidden_from})


def test_what_a_file_gives_is_set(process: Process) -> None:
    first, second, third = (process.organization("") for _ in range(3))
    import_plans(process, plan(excluded_organizations=[str(first), str(second)]))
    head = process.log.head()
    excluded = [str(third), str(second), str(third)]
    assert import_plans(process, plan(enabled=False, excluded_organizations=excluded)) == (
        Imported(0, 1, 0)
    )
    assert topics(process, head) == [
        "plan.disabled",
        "plan.organization_excluded",
        "plan.organization_included",
    ]
    now = stored(process)
    assert (now.enabled, now.excluded) == (False, {second, third})
    import_plans(process, plan(enabled=True, excluded_organizations=[]))
    now = stored(process)
    assert (now.enabled, now.excluded) == (True, set())


def test_one_wrong_plan_keeps_all_others_out(process: Process) -> None:
    stranger = str(uuid4())
    assert refusal(process, plan("A"), plan("B", organization_id=stranger), plan("C")) == [
        f'plans[1] "B": organization_id: there is no organization {stranger}'
    ]
    assert import_plans(process, plan("A"), plan("C")) == Imported(2, 0, 0)


def test_every_reason_against_every_plan_is_told_at_once(process: Process) -> None:
    owner, stranger = process.organization(""), uuid4()
    import_plans(process, plan("A", id=str(uuid4())), plan("A", id=str(uuid4())))
    found = refusal(
        process,
        plan("A"),
        plan("B", excluded_organizations=[str(owner), str(stranger), str(stranger)]),
        plan("C", organization_id=str(stranger)),
        plan("D", id=str(owner)),
    )
    assert [line.partition(": ")[0] for line in found] == [
        'plans[0] "A"',
        'plans[1] "B"',
        'plans[1] "B"',
        'plans[2] "C"',
        'plans[3] "D"',
    ]
    assert found[1:3] == [
        f'plans[1] "B": excluded_organizations[{index}]: there is no organization {stranger}'
        for index in (1, 2)
    ]


def test_a_plan_is_switched_and_hidden_one_by_one(process: Process) -> None:
    organization = process.organization("")
    import_plans(process, plan())
    catalogue, cause, plan_id = process.catalogue, process.cause(), stored(process).id
    head = process.log.head()
    for _ in range(2):
        assert not catalogue.switch(plan_id, cause, enabled=False).enabled
        assert catalogue.exclude(plan_id, organization, cause).excluded == {organization}
    for _ in range(2):
        assert catalogue.switch(plan_id, cause, enabled=True).enabled
        assert catalogue.include(plan_id, organization, cause).excluded == set()
    assert len(topics(process, head)) == 4
    assert stored(process).enabled


def test_what_does_not_exist_is_not_found(process: Process) -> None:
    organization, stranger, cause = process.organization(""), uuid4(), process.cause()
    import_plans(process, plan())
    plan_id, catalogue = stored(process).id, process.catalogue
    for ask in (
        lambda: catalogue.switch(stranger, cause, enabled=True),
        lambda: catalogue.switch(organization, cause, enabled=True),
        lambda: catalogue.exclude(stranger, organization, cause),
        lambda: catalogue.include(stranger, organization, cause),
    ):
        with pytest.raises(NotFound, match="there is no plan"):
            ask()
    for act in (catalogue.exclude, catalogue.include):
        with pytest.raises(NotFound, match=f"there is no organization {stranger}"):
            act(plan_id, stranger, cause)


def test_an_own_plan_is_hidden_from_nobody_by_name(process: Process) -> None:
    owner = process.organization("")
    import_plans(process, plan(organization_id=str(owner)))
    with pytest.raises(NotPossible, match="is not global"):
        process.catalogue.exclude(stored(process, owner=owner).id, owner, process.cause())
