"""The threads of one process: they outlive an error, and end when they are told to."""

from datetime import timedelta
from threading import Event

import pytest

from app.processes.runtime import Runtime
from domain.months import month_of
from projections.engine.follower import Follower
from tests.installation import Installation, Process, numbers, sqlite_only, wait_until
from tests.projections.link_steps import LinkSteps
from tests.projections.looking import places, register
from tests.workers.fees import fall_due


def test_a_thread_that_fails_starts_again(
    process: Process, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("app.processes.runtime.RESTART_S", 0.01)
    runs = iter([RuntimeError("nobody expected it"), None])
    real = Follower.run

    def run(self: Follower, stop: Event) -> None:
        error = next(runs, None) if self.name == "projector" else None
        if error is not None:
            raise error
        real(self, stop)

    monkeypatch.setattr(Follower, "run", run)
    runtime = Runtime(process)
    runtime.start()
    try:
        register(process, 1)
        head = process.log.head()
        wait_until(lambda: set(places(process).values()) == {head})
    finally:
        runtime.stop()


@sqlite_only("no database has a say in it")
@pytest.mark.parametrize(("refresh_s", "read"), [("0", []), ("900", ["links"])])
def test_only_where_it_is_set_are_links_read_in_the_background(
    installation: Installation, monkeypatch: pytest.MonkeyPatch, refresh_s: str, read: list[str]
) -> None:
    begun = list[str]()
    monkeypatch.setattr(Runtime, "_read_links", lambda _: begun.append("links"))
    installation.environment |= {"READINGS_REFRESH_S": refresh_s}
    runtime = Runtime(installation.process())
    runtime.start()
    runtime.stop()
    assert begun == read


def test_what_no_message_tells_of_is_taken_up_within_two_seconds(process: Process) -> None:
    runtime = Runtime(process, {"projector", "worker"})  # Nobody dispatches.
    runtime.start()
    try:
        owner = process.organization()
        fee = fall_due(process, owner, month_of(process.clock()))
        slices, link = process.create_job(owner, numbers(1)), LinkSteps(process, owner)
        for stream_id in (fee, slices, link.id):
            wait_until(lambda of=stream_id: len(process.log.history(of)) > 1)  # type: ignore[misc]  # It is one.
            begun, taken_up, *_ = process.log.history(stream_id)
            assert taken_up.timestamp - begun.timestamp <= timedelta(seconds=2), taken_up
    finally:
        runtime.stop()
