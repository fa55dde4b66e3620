"""Checkpoints are made when due, over what cannot be lost, and never against each other."""

from datetime import timedelta

import pytest

from app.security.checkpoint_keys import verify
from domain.errors import NotPossible
from domain.finance.statement import Month
from projections.audit.tree import leaf_hash, root_of
from projections.stores.checkpoints import StoredCheckpoint
from tests.installation import Process
from tests.projections.histories import leave_out
from tests.projections.looking import register
from workers.checkpoints import Checkpoints, NotAccepted, name_of

LAG_S, EVERY_S = 60, 3600


class Keeping:
    """A sink that keeps notes, is away, or refuses one."""

    def __init__(self) -> None:
        self.kept: dict[str, str] = {}
        self.is_away = False
        self.refused = ""

    def __call__(self, name: str, note: str) -> None:
        if self.is_away or name == self.refused:
            raise NotAccepted(name)
        self.kept[name] = note


def made(process: Process) -> list[StoredCheckpoint]:
    return [*process.checkpoint_store.all()]


def tick(process: Process) -> list[StoredCheckpoint]:
    """Do what the clock does, and return all checkpoints."""
    process.checkpoints.follow()
    process.checkpoints.run()
    return made(process)


@pytest.mark.each_database
def test_only_events_that_are_old_enough_are_signed(process: Process) -> None:
    register(process, 3)
    assert tick(process) == []
    with pytest.raises(NotPossible, match="CHECKPOINT_LAG_S"):
        process.checkpoints.make()
    process.time.forward(seconds=LAG_S)
    register(process, 300)
    (first,) = tick(process)
    rows = process.log.stored(0, 3)
    checkpoint = first.signed.checkpoint
    assert (checkpoint.size, checkpoint.position) == (3, rows[-1].position)
    assert checkpoint.root == root_of(leaf_hash(*row) for row in rows)
    assert checkpoint.origin == "127.0.0.1:8080"
    public_keys = [key.public_key for key in process.checkpoint_keys.live()]
    assert first.signed.fault(public_keys, verify) is None
    process.time.forward(seconds=LAG_S)
    assert process.checkpoints.make().signed.checkpoint.size == 304, "and the origin of the log"


def test_one_is_made_at_each_interval_and_soon_after_a_close(process: Process) -> None:
    register(process, 1)
    process.time.forward(seconds=LAG_S)
    assert len(tick(process)) == len(tick(process)) == 1
    process.time.forward(seconds=EVERY_S - 1)
    assert len(tick(process)) == 1
    process.time.forward(seconds=1)
    assert len(tick(process)) == 2
    process.log.append(Month.close("2026-02", process.cause()))
    closed_at = process.log.head()
    assert len(tick(process)) == 2
    process.time.forward(seconds=LAG_S)
    assert len(tick(process)) == len(tick(process)) == 3
    found = process.checkpoint_store.covering(closed_at)
    assert found is not None
    assert found.number == 3
    assert process.checkpoint_store.covering(closed_at + 1) is None


def test_after_a_clock_was_set_back_at_a_close_one_is_made_and_no_more(process: Process) -> None:
    register(process, 1)
    leave_out(process)
    process.time.forward(seconds=LAG_S)
    tick(process)
    process.time.forward(minutes=20)
    register(process, 1)  # Dated ahead, before the close.
    process.time.forward(minutes=-20)
    process.log.append(Month.close("2026-02", process.cause()))
    process.time.forward(seconds=LAG_S)
    assert [len(tick(process)) for _ in range(5)] == [2] * 5
    assert process.checkpoint_store.covering(process.log.head()) is not None
    register(process, 1)  # The one that is dated ahead hides nothing that comes later.
    process.time.forward(seconds=LAG_S)
    newest = process.checkpoints.make().signed.checkpoint
    assert newest.position == process.log.head()
    process.time.forward(hours=-1)
    assert process.checkpoints.make().signed.checkpoint.size == newest.size


@pytest.mark.each_database
def test_what_denies_an_earlier_checkpoint_is_not_signed(process: Process) -> None:
    register(process, 3)
    process.time.forward(seconds=LAG_S)
    tick(process)
    with process.databases.keys.writing() as connection:
        table = "stored_events" if process.settings.is_on_files else "log_events"
        change = f"UPDATE {table} SET topic = 'another'"  # noqa: S608  # Our own name.
        connection.exec_driver_sql(change)
    process.tree_builder.restart()
    register(process, 1)
    process.time.forward(seconds=EVERY_S)
    for attempt in (process.checkpoints.make, process.checkpoints.run):
        with pytest.raises(NotPossible, match="not the one of the checkpoint"):
            attempt()
    assert len(made(process)) == 1


def test_each_one_reaches_the_sink_once_it_is_there_and_none_holds_up_a_newer_one(
    process: Process,
) -> None:
    sink = Keeping()
    checkpoints = having(process, sink)
    register(process, 1)
    process.time.forward(seconds=LAG_S)
    first = checkpoints.make()
    sink.is_away = True
    with pytest.raises(NotAccepted):
        checkpoints.deliver()
    process.time.now += timedelta(seconds=1)
    second = checkpoints.make()
    assert process.checkpoint_store.newest(delivered=True) is None
    sink.is_away, sink.refused = False, name_of(first.signed.checkpoint)
    with pytest.raises(NotAccepted):
        checkpoints.deliver()
    assert [*sink.kept.values()] == [second.signed.note]
    sink.refused = ""
    checkpoints.deliver()
    checkpoints.deliver()
    assert [*sink.kept.values()] == [second.signed.note, first.signed.note]
    newest = process.checkpoint_store.newest(delivered=True)
    assert newest is not None
    assert (newest.number, newest.delivered_at) == (second.number, process.time())


def having(process: Process, sink: Keeping) -> Checkpoints:
    process.checkpoints.sink = sink  # The container takes it from a setting.
    return process.checkpoints


def test_a_synchronous_standby_has_what_anybody_can_see(process: Process) -> None:
    register(process, 2)
    process.views.waits_for_standby = lambda: True  # type: ignore[method-assign]  # There is none here.
    assert process.checkpoints.make().signed.checkpoint.size == 2
    assert process.time() == process.cause().at
