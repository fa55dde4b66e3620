"""Whatever was committed is planned for each endpoint that wants it, once, whatever dies."""

from datetime import timedelta
from uuid import UUID

import pytest

from domain.webhooks.commands import Changes
from domain.webhooks.messages import TEST
from tests.installation import Process, numbers
from tests.projections.looking import place_of
from tests.workers.webhooks.lab import Lab, Told, plan, planner_of
from workers.webhook_planner import BACK, WebhookPlanner


@pytest.fixture
def lab(process: Process) -> Told:
    return Told(process)


def types(lab: Told, endpoint_id: UUID) -> list[str]:
    return [each.type for each in lab.deliveries(lab.owner, endpoint_id)]


def test_a_test_is_told_to_its_endpoint_alone_whatever_that_wants(lab: Told) -> None:
    asked, webhooks = lab.endpoint(lab.owner, events=["job.finished"]), lab.process.webhooks
    delivery_id = webhooks.test(webhooks.get(lab.owner, asked), lab.process.cause())
    lab.plan()
    (told,) = lab.deliveries(lab.owner, asked)
    assert (told.id, told.type) == (delivery_id, TEST)
    assert lab.all == []


@pytest.mark.each_database
def test_an_endpoint_is_told_what_it_wants_and_nothing_from_before_it_was_made(lab: Told) -> None:
    process, owner = lab.process, lab.owner
    process.deposit(owner, "1.00", "before")
    every, jobs = lab.endpoint(owner), lab.endpoint(owner, events=["job.finished"])
    process.deposit(owner, "1.00", "after")
    job_id = process.create_job(owner, numbers(3))
    process.finish_job(job_id)
    lab.plan()
    assert types(lab, every) == ["wallet.deposited", "job.finished"]
    [told] = lab.deliveries(owner, jobs)
    assert told.about == job_id
    assert (told.status, told.attempts, told.next_attempt_at) == ("pending", 0, lab.clock())
    assert {*lab.bells.taken()} == {(owner, each) for each in (lab.hook, every, jobs)}


@pytest.mark.each_database
def test_nothing_of_another_organization_is_told(lab: Told) -> None:
    other, store = lab.process.organization(name="Other"), lab.store
    theirs = lab.endpoint(other)
    lab.happen("mine")
    assert lab.one.type == "wallet.deposited"
    assert lab.deliveries(other, theirs) == []
    assert store.page(other, lab.hook, None, slice(0, 10)) == ([], 0)
    assert store.get(other, lab.hook, lab.one.id) is None
    assert store.get(lab.owner, theirs, lab.one.id) is None
    assert store.get(lab.owner, lab.hook, lab.one.id) == lab.one


def test_a_disabled_endpoint_is_told_nothing_and_afterwards_only_what_happens_then(
    lab: Told,
) -> None:
    lab.change(Changes(enabled=False))
    lab.process.deposit(lab.owner, "1.00", "meanwhile")
    lab.change(Changes(enabled=True))
    lab.happen("then")
    told = lab.one
    lab.happen("again")
    assert len(lab.all) == 2
    lab.process.webhooks.delete(lab.its, lab.process.cause())
    lab.happen("late")
    assert len(lab.all) == 2
    assert told in lab.all


@pytest.mark.each_database
def test_planning_again_from_anywhere_changes_nothing_that_is_known(lab: Told) -> None:
    process = lab.process
    lab.happen("a", "b", "c")
    lab.settle()
    known = lab.all
    assert {each.status for each in known} == {"delivered"}
    with process.views.writing() as connection:
        process.positions.start(connection, WebhookPlanner.name, 1, None)
    plan(process, planner_of(process))
    assert lab.all == known


def test_a_planner_that_dies_before_it_rings_has_planned_and_the_beat_rings(
    lab: Told, monkeypatch: pytest.MonkeyPatch
) -> None:
    lab.process.deposit(lab.owner, "1.00", "one")

    def die(_: object) -> None:
        raise SystemExit

    with monkeypatch.context() as patch:
        patch.setattr(lab.bells, "publish", die)
        with pytest.raises(SystemExit):
            lab.plan()
    lab.work.beat()
    assert lab.bells.taken() == [(lab.owner, lab.hook)]


@pytest.mark.each_database
@pytest.mark.parametrize("keeps_tables", [True, False])
def test_without_its_position_it_starts_72_hours_back(lab: Told, *, keeps_tables: bool) -> None:
    lab.happen("old")
    lab.clock.now += BACK + timedelta(seconds=1)
    lab.happen("new")
    lab.deliver()
    before = [each.id for each in lab.all]
    assert len(before) == 2
    process, rows = lab.process, lab.process.positions.rows
    with process.views.writing() as connection:
        connection.execute(rows.delete().where(rows.c.name == WebhookPlanner.name))
    if not keeps_tables:  # As of a release whose tables have another shape.
        lab.store.metadata.drop_all(process.views.engine)
        lab.store.metadata.create_all(process.views.engine)
    plan(process, planner_of(process))
    after = [each.id for each in lab.all]
    assert after == (before if keeps_tables else before[1:])
    assert place_of(process, WebhookPlanner.name).position == process.log.head()


def test_without_endpoints_it_moves_on_without_reading_the_log(
    process: Process, monkeypatch: pytest.MonkeyPatch
) -> None:
    lab, owner = Lab(process), process.organization()
    lab.plan()
    process.deposit(owner, "1.00", "one")
    process.projector.catch_up()
    lab.planner._moved_at = 0.0  # noqa: SLF001  # As if a while ago.
    monkeypatch.setattr(process.log, "follow", None)  # Whoever reads it now fails.
    while lab.planner.step():
        pass
    assert place_of(process, WebhookPlanner.name).position == process.log.head()


@pytest.mark.each_database
def test_it_waits_for_the_read_model_of_endpoints(lab: Told) -> None:
    lab.plan()
    lab.process.deposit(lab.owner, "1.00", "one")
    lab.process.projector.catch_up()
    late = lab.endpoint(lab.owner)
    lab.process.deposit(lab.owner, "1.00", "two")
    while lab.planner.step():
        pass
    assert len(lab.all) == 1
    lab.plan()
    assert len(lab.all) == 2
    assert len(lab.deliveries(lab.owner, late)) == 1
