"""Which plan an entry of a file stands for: by its id, else by what it is known by."""

from uuid import UUID, uuid4

import pytest

from domain.catalogue.commands import Imported
from domain.catalogue.plan import Plan
from tests.installation import Process
from tests.plan_files import import_plans, plan, refusal, stored


def test_without_an_id_a_plan_is_known_by_owner_and_provider_id_else_by_its_name(
    process: Process,
) -> None:
    owner, chosen = str(process.organization("")), uuid4()
    import_plans(process, plan("Old"), plan("Old", organization_id=owner))
    renamed = plan("New", provider_plan_id="old")
    assert import_plans(process, renamed) == Imported(0, 1, 0)
    assert import_plans(process, renamed | {"organization_id": owner}) == Imported(0, 1, 0)
    import_plans(process, plan("A", id=str(chosen)))
    assert import_plans(process, plan("A", data_mb=5)) == Imported(0, 1, 0)
    assert process.log.get(Plan, chosen).terms.data_mb == 5, "an id of its own is found again"
    unconnected = plan("Soon", provider_plan_id=None)
    import_plans(process, unconnected)
    assert import_plans(process, unconnected | {"data_mb": 5}) == Imported(0, 1, 0)
    connected = plan("Soon", provider_plan_id="soon")
    assert import_plans(process, connected) == Imported(1, 0, 0), "known by another thing"


def test_an_id_wins_over_everything_else(process: Process) -> None:
    import_plans(process, plan("A"), plan("B"))
    known = str(stored(process, "A").id)
    assert import_plans(process, plan("B", id=known, name="A2")) == Imported(0, 1, 0)
    terms = process.log.get(Plan, UUID(known)).terms
    assert (terms.name, terms.provider_plan_id) == ("A2", "b")


def test_a_plan_that_several_are_known_as_needs_its_id(process: Process) -> None:
    ids = sorted(str(uuid4()) for _ in range(2))
    import_plans(process, *(plan("A", id=each) for each in ids))
    assert refusal(process, plan("A")) == [
        'plans[0] "A": id: is needed, because several plans have this provider_plan_id: '
        + ", ".join(ids)
    ]
    assert import_plans(process, plan("A", id=ids[1], data_mb=5)) == Imported(0, 1, 0)


def test_what_belongs_to_another_or_is_no_plan_is_not_taken_over(process: Process) -> None:
    owner, other = process.organization(""), process.organization("")
    import_plans(process, plan("Global"), plan("Own", organization_id=str(owner)))
    shared, own = stored(process, "Global").id, stored(process, "Own", owner).id
    for taken, thief, why in (
        (own, str(other), "a plan that belongs to another organization"),
        (own, None, "a plan that belongs to another organization"),
        (shared, str(owner), "a plan that belongs to another organization"),
        (owner, None, "something that is no plan"),
    ):
        assert refusal(process, plan("X", id=str(taken), organization_id=thief)) == [
            f'plans[0] "X": id: is the id of {why}'
        ]


def test_an_identity_that_a_plan_has_given_up_is_not_guessed_at(process: Process) -> None:
    import_plans(process, plan("A"))
    moved = str(stored(process, "A").id)
    import_plans(process, plan("B", id=moved))
    [line] = refusal(process, plan("A"))
    assert line.startswith(f'plans[0] "A": id: is needed: {moved} had this provider_plan_id')
    fresh = str(uuid4())
    assert import_plans(process, plan("A", id=fresh)) == Imported(1, 0, 0)
    assert import_plans(process, plan("A")) == Imported(0, 0, 1)


@pytest.mark.parametrize("known_by", ["provider_plan_id", "name"])
def test_two_entries_of_one_identity_are_refused(process: Process, known_by: str) -> None:
    changes = {} if known_by == "provider_plan_id" else {"provider_plan_id": None}
    twin = plan("A", **changes)
    why = f'{known_by}: is that of plans[0] "A" too; give each of them an id'
    assert refusal(process, twin, plan("B"), twin) == [f'plans[2] "A": {why}']
    named = twin | {"id": str(uuid4())}
    for first, second in ((twin, named), (named, twin)):
        assert refusal(process, first, second) == [f'plans[1] "A": {why}']
    ids = [{"id": str(uuid4())} for _ in range(2)]
    assert import_plans(process, *(twin | each for each in ids)) == Imported(2, 0, 0)


def test_two_entries_of_one_plan_are_refused(process: Process) -> None:
    import_plans(process, plan("A"))
    known = stored(process, "A").id
    for first, second in (
        (plan("A"), plan("B", id=str(known))),
        (plan("C", id=str(known)), plan("B", id=str(known))),
    ):
        assert refusal(process, first, second) == [
            f'plans[1] "B": id: {known} is the plan of plans[0] "{first["name"]}" already'
        ]
