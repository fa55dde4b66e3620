"""Every process learns within seconds that its installation is held, or released."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest

from app.processes import runtime
from app.processes.runtime import Runtime
from domain.accounts.providers import switch_provider
from domain.cause import Cause, utc_now
from domain.errors import InstallationHeld
from domain.finance.statement import Month
from domain.lookups.bulk_job import BulkJob
from domain.webhooks.commands import Draft
from tests.installation import (
    CountingProvider,
    Installation,
    Process,
    SetClock,
    numbers,
    postgresql_only,
    wait_until,
)
from tests.projections.looking import places
from tests.support.webhooks import KeepingSender


def act(process: Process) -> Cause:
    return Cause(process.clock(), "by hand", "os:ann")


@pytest.fixture
def held(installation: Installation) -> Process:
    """The installation as an operator sees it who has held it: with a job and an endpoint."""
    process = installation.process()
    past = installation.process(SetClock(datetime(2026, 9, 30, 12, tzinfo=UTC)))
    owner = past.organization()  # So months are to be closed.
    process.webhook_key.ensure()
    process.webhooks.register(Draft(owner, "https://a.example", None, None, None), process.cause())
    process.create_job(owner, numbers(3))
    process.cut_off.confirm()
    assert process.gate.switch(act(process), held=True)
    assert not process.gate.switch(act(process), held=True)
    return process


class Running:
    """All threads of a process, with a sender and a provider that remember."""

    def __init__(self, installation: Installation) -> None:
        self.provider = CountingProvider(remote=True)
        self.process = installation.process(provider=self.provider)
        self.sender = self.process.webhook_sender = KeepingSender()  # type: ignore[assignment]  # It has the shape of it.
        self.sunk: list[str] = []
        self.process.checkpoints.sink = lambda name, _: self.sunk.append(name)
        self.runtime = Runtime(self.process)
        self.runtime.start()


@pytest.fixture
def running(
    installation: Installation, held: Process, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Running]:
    assert held.gate.is_held()
    for often in ("MONTH_END_S", "CHECKPOINT_S", "DELIVER_S"):
        monkeypatch.setattr(runtime, often, 1.0)
    made = Running(installation)
    yield made
    made.runtime.stop()


@pytest.mark.each_database
def test_a_held_installation_rests_until_it_is_released(
    held: Process, running: Running, caplog: pytest.LogCaptureFixture
) -> None:
    head = held.log.head()
    wait_until(lambda: places(held).get("audit_tree") == head)  # After five seconds of the clock.
    assert (running.provider.asked, running.sender.told, running.sunk) == ([], [], [])
    assert held.log.head() == head
    (job,) = jobs(held)
    held.gate.switch(act(held), held=False)
    wait_until(lambda: held.log.get(BulkJob, job).finished_at is not None)
    wait_until(lambda: {each.url for each in running.sender.told} == {"https://a.example"})
    wait_until(lambda: bool(running.sunk) and bool(held.events(Month.Closed)))
    held.gate.switch(act(held), held=True)
    wait_until(running.process.gate.is_held)
    assert {"this installation is held", "this installation is released"} <= {
        record.getMessage().partition(":")[0] for record in caplog.records
    }


def jobs(process: Process) -> list[UUID]:
    return [each.originator_id for each in process.events(BulkJob.Created)]


@postgresql_only("its server has a clock")
def test_whoever_looks_finds_all_that_was_changed(installation: Installation) -> None:
    off = [timedelta(hours=1)]
    process, by_hand = installation.process(lambda: utc_now() - off[0]), Cause(utc_now(), "by hand")
    gate = process.gate
    gate.refresh()
    assert (gate.is_shut(), gate.off_s > 3599) == (True, True)
    off[0] = timedelta(0)
    switch_provider(process.log, "offline", by_hand, drained=True)
    gate.refresh()
    assert (gate.is_shut(), gate.spares("offline"), gate.spares("other")) == (False, True, False)
    installation.process().gate.switch(by_hand, held=True)
    gate.refuse()
    gate.refresh()
    assert gate.spares("other")
    with pytest.raises(InstallationHeld):
        gate.refuse()
