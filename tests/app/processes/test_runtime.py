"""The threads of one process: they outlive an error, and end when they are told to."""

from threading import Event

import pytest

from app.processes.runtime import Runtime
from domain.log.signal import Signal
from projections.engine.follower import Follower
from tests.installation import Installation, Process, sqlite_only, wait_until
from tests.projections.looking import places, register


@sqlite_only("the waker of SQLite looks at a file")
def test_a_waker_whose_file_is_gone_still_wakes_its_own_process(process: Process) -> None:
    process.settings.database_path.with_name("gone.db")
    waker = type(process.waker)(Signal(), process.settings.database_path / "no directory")
    assert not waker.wait(waker.count, 0.05)


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
