"""Whatever was committed is planned for each endpoint that wants it, once, whatever dies."""

from uuid import UUID

import pytest

from domain.webhooks.commands import Changes
from domain.webhooks.messages import TEST
from tests.installation import Process, numbers
from tests.projections.looking import place_of
from tests.workers.webhooks.lab import Lab, plan, planner_of
from workers.webhook_planner import BACK, WebhookPlanner


@pytest.fixture
def lab(process: Process) -> Lab:
    return Lab(process)


def types(lab: Lab, owner: UUID, endpoint_id: UUID) -> list[str]:
    return [each.type for each in lab.deliveries(owner, endpoint_id)]


@pytest.mark.any_database
def test_a_test_is_told_to_its_endpoint_alone_whatever_that_wants(
    lab: Lab, process: Process
) -> None:
    owner = process.organization()
    asked, other = lab.endpoint(owner, events=["job.finished"]), lab.endpoint(owner)
    delivery_id = process.webhooks.test(process.webhooks.get(owner, asked), process.cause())
    lab.plan()
    assert [(each.id, each.type) for each in lab.deliveries(owner, asked)] == [(delivery_id, TEST)]
    assert lab.deliveries(owner, other) == []


def test_an_endpoint_is_told_what_it_wants_and_nothing_from_before_it_was_made(
    lab: Lab, process: Process
) -> None:
    owner = process.organization()
    process.deposit(owner, "1.00", "before")
    every, jobs = lab.endpoint(owner), lab.endpoint(owner, events=["job.finished"])
    process.deposit(owner, "1.00", "after")
    job_id = process.create_job(owner, numbers(3))
    process.finish_job(job_id)
    lab.plan()
    assert types(lab, owner, every) == ["wallet.deposited", "job.finished"]
    [told] = lab.deliveries(owner, jobs)
    assert told.about == job_id
    assert (told.status, told.attempts, told.next_attempt_at) == ("pending", 0, process.clock())
    assert {*lab.bells.taken()} == {(owner, every), (owner, jobs)}


def test_nothing_of_another_organization_is_told(lab: Lab, process: Process) -> None:
    owner, other = process.organization(), process.organization(name="Other")
    mine, theirs = lab.endpoint(owner), lab.endpoint(other)
    process.deposit(owner, "1.00", "mine")
    lab.plan()
    assert types(lab, owner, mine) == ["wallet.deposited"]
    assert types(lab, other, theirs) == []
    [delivery] = lab.deliveries(owner, mine)
    store = process.webhook_deliveries
    assert store.page(other, mine, None, slice(0, 10)) == ([], 0)
    assert store.get(other, mine, delivery.id) is None
    assert store.get(owner, theirs, delivery.id) is None
    assert store.get(owner, mine, delivery.id) == delivery


@pytest.mark.any_database
def test_a_disabled_endpoint_is_told_nothing_and_afterwards_only_what_happens_then(
    lab: Lab, process: Process
) -> None:
    owner = process.organization()
    endpoint = lab.endpoint(owner)

    def switch(*, enabled: bool) -> None:
        process.webhooks.change(
            process.webhooks.get(owner, endpoint), Changes(enabled=enabled), process.cause()
        )

    switch(enabled=False)
    process.deposit(owner, "1.00", "meanwhile")
    switch(enabled=True)
    process.deposit(owner, "1.00", "then")
    lab.plan()
    [told] = lab.deliveries(owner, endpoint)
    process.deposit(owner, "1.00", "again")
    lab.plan()
    assert len(lab.deliveries(owner, endpoint)) == 2
    process.webhooks.delete(process.webhooks.get(owner, endpoint), process.cause())
    process.deposit(owner, "1.00", "late")
    lab.plan()
    assert len(lab.deliveries(owner, endpoint)) == 2
    assert told in lab.deliveries(owner, endpoint)


def test_planning_again_from_anywhere_changes_nothing_that_is_known(
    lab: Lab, process: Process
) -> None:
    owner = process.organization()
    endpoint = lab.endpoint(owner)
    for index in range(3):
        process.deposit(owner, "1.00", f"d-{index}")
    lab.settle()
    known = lab.deliveries(owner, endpoint)
    assert {each.status for each in known} == {"delivered"}
    with process.views.writing() as connection:
        process.positions.start(connection, WebhookPlanner.name, 1, None)
    plan(process, planner_of(process))
    assert lab.deliveries(owner, endpoint) == known


@pytest.mark.any_database
def test_a_planner_that_dies_before_it_rings_has_planned_and_the_beat_rings(
    lab: Lab, process: Process, monkeypatch: pytest.MonkeyPatch
) -> None:
    owner = process.organization()
    endpoint = lab.endpoint(owner)
    process.deposit(owner, "1.00", "one")
    process.projector.catch_up()

    def die(_: object) -> None:
        raise SystemExit

    with monkeypatch.context() as patch:
        patch.setattr(lab.bells, "publish", die)
        with pytest.raises(SystemExit):
            lab.plan()
    lab.work.beat()
    assert lab.bells.taken() == [(owner, endpoint)]


@pytest.mark.parametrize("keeps_tables", [True, False])
def test_without_its_position_it_starts_72_hours_back(
    lab: Lab, process: Process, *, keeps_tables: bool
) -> None:
    owner = process.organization()
    endpoint = lab.endpoint(owner)
    process.deposit(owner, "1.00", "old")
    lab.plan()
    process.time.forward(hours=BACK.total_seconds() / 3600, seconds=1)
    process.deposit(owner, "1.00", "new")
    lab.settle()
    before = [each.id for each in lab.deliveries(owner, endpoint)]
    assert len(before) == 2
    rows = process.positions.rows
    with process.views.writing() as connection:
        connection.execute(rows.delete().where(rows.c.name == WebhookPlanner.name))
    if not keeps_tables:  # As of a release whose tables have another shape.
        store = process.webhook_deliveries
        store.metadata.drop_all(process.views.engine)
        store.metadata.create_all(process.views.engine)
    plan(process, planner_of(process))
    after = [each.id for each in lab.deliveries(owner, endpoint)]
    assert after == (before if keeps_tables else before[1:])
    assert place_of(process, WebhookPlanner.name).position == process.log.head()


@pytest.mark.any_database
def test_without_endpoints_it_moves_on_without_reading_the_log(
    lab: Lab, process: Process, monkeypatch: pytest.MonkeyPatch
) -> None:
    owner = process.organization()
    lab.plan()
    process.deposit(owner, "1.00", "one")
    process.projector.catch_up()
    lab.planner._moved_at = 0.0  # noqa: SLF001  # As if a while ago.
    monkeypatch.setattr(process.log, "follow", None)  # Whoever reads it now fails.
    while lab.planner.step():
        pass
    assert place_of(process, WebhookPlanner.name).position == process.log.head()


def test_it_waits_for_the_read_model_of_endpoints(lab: Lab, process: Process) -> None:
    owner = process.organization()
    endpoint = lab.endpoint(owner)
    lab.plan()
    process.deposit(owner, "1.00", "one")
    process.projector.catch_up()
    late = lab.endpoint(owner)
    process.deposit(owner, "1.00", "two")
    while lab.planner.step():
        pass
    assert len(lab.deliveries(owner, endpoint)) == 1
    lab.plan()
    assert len(lab.deliveries(owner, endpoint)) == 2
    assert len(lab.deliveries(owner, late)) == 1
