"""The catalogue: imports that are all or nothing and may be repeated, and changes one by one."""

from typing import Any
from uuid import uuid4

import pytest

from domain.catalogue.commands import Imported
from tests.installation import Process
from tests.plan_files import covering, import_plans, plan, profile, refusal, stored, topics


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
    cause = process.cause()
    process.catalogue.change(published.id, lambda it: it.switch(cause, enabled=False))
    process.catalogue.change(published.id, lambda it: it.exclude(hidden_from, cause))
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
