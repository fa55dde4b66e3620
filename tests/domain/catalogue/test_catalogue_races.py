"""Imports that race each other, and imports of a great many plans."""

from collections.abc import Callable
from uuid import uuid4

import pytest

from domain.catalogue.commands import Catalogue, Imported, PlansByKey
from domain.catalogue.plan import Plan, key_of
from domain.errors import NotPossible, ServiceUnavailable
from domain.log.log import CONTESTED, RACES_MAX
from tests.domain.asking import all_at_once
from tests.installation import Installation, Process
from tests.plan_files import import_plans, plan, stored, topics


@pytest.mark.each_database
def test_imports_of_two_processes_at_once_make_every_plan_once(installation: Installation) -> None:
    processes = [installation.process() for _ in range(2)]
    plans = [plan(f"Plan {number}") for number in range(50)]
    counts = all_at_once(2, lambda number: import_plans(processes[number], *plans))
    assert counts in (
        [Imported(0, 0, 50), Imported(50, 0, 0)],
        [Imported(50, 0, 0), Imported(0, 0, 50)],
    )
    assert topics(processes[0]) == ["plan.published"] * 50


def interrupt(process: Process, meanwhile: Callable[[], object]) -> None:
    """Call something once, after plans are read the next time."""
    look, pending = process.catalogue.known, [meanwhile]

    def known() -> PlansByKey:
        found = look()
        if pending:
            pending.pop()()
        return found

    process.catalogue = Catalogue(process.log, known)


def test_an_import_that_was_overtaken_decides_anew(
    installation: Installation, process: Process
) -> None:
    other = installation.process()
    interrupt(process, lambda: import_plans(other, plan("A"), plan("B")))
    assert import_plans(process, plan("B", data_mb=5), plan("C")) == Imported(1, 1, 0)


def test_a_plan_that_was_renamed_meanwhile_is_not_taken_for_the_old_one(
    installation: Installation, process: Process
) -> None:
    other, chosen = installation.process(), uuid4()
    import_plans(process, plan("A", id=str(chosen)))
    interrupt(process, lambda: import_plans(other, plan("B", id=str(chosen))))
    assert import_plans(process, plan("A")) == Imported(1, 0, 0)
    assert process.log.get(Plan, chosen).terms.name == "B"


def test_an_import_does_not_try_for_ever(process: Process) -> None:
    chosen, looks = uuid4(), []
    import_plans(process, plan("B", id=str(chosen)))

    def outdated() -> PlansByKey:
        looks.append(1)
        return {key_of(None, "a", "A"): [chosen]}

    process.catalogue = Catalogue(process.log, outdated)
    with pytest.raises(ServiceUnavailable, match=CONTESTED):
        import_plans(process, plan("A"))
    assert len(looks) == RACES_MAX


@pytest.mark.each_database
def test_changes_of_one_plan_by_two_operators_are_all_kept(installation: Installation) -> None:
    processes = [installation.process() for _ in range(2)]
    organizations = [processes[0].organization("") for _ in range(20)]
    import_plans(processes[0], plan())
    plan_id = stored(processes[0]).id

    def hide(number: int) -> None:
        cause, change = processes[number].cause(), processes[number].catalogue.change
        for each in organizations[number::2]:
            change(plan_id, lambda plan, each=each: plan.exclude(each, cause))  # type: ignore[misc]  # Bound at once.

    assert all_at_once(2, hide) == [None, None]
    assert stored(processes[0]).excluded == set(organizations)


def test_a_table_that_is_behind_the_log_decides_nothing(process: Process) -> None:
    import_plans(process, plan())
    process.projector.catch_up()
    with process.views.writing() as connection:  # As a newer release leaves it.
        connection.execute(process.positions.rows.update().values(version=99))
    process.organization("")
    with pytest.raises(NotPossible, match="read model plans is behind the log"):
        import_plans(process, plan())
