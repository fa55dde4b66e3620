"""`migrate`, and what commands say where it has not run or where the clock is wrong."""

from datetime import timedelta
from pathlib import Path

import pytest

from domain.cause import utc_now
from projections.engine.database import Database
from tests.app.cli.shell import Shell

NEED_TABLES = ["org list", "client create --m2m", "projections rebuild --all", "audit verify"]


def test_without_tables_a_command_says_so_and_makes_nothing(nowhere: Shell) -> None:
    for command in NEED_TABLES:
        refusal = nowhere.refusal(*command.split())
        assert refusal.startswith(f"there is no database at {nowhere.database}")
        assert refusal.endswith("python -m app migrate")
    assert [*nowhere.home.iterdir()] == []
    nowhere.database.parent.mkdir()
    nowhere.database.touch()  # A file without tables is no installation.
    for command in NEED_TABLES:
        assert nowhere.refusal(*command.split()).endswith("run: python -m app migrate")


def test_a_log_that_is_gone_is_not_begun_anew_beside_its_read_models(shell: Shell) -> None:
    shell.new_organization()
    shell.database.unlink()
    for command in ("org list", "audit verify", "doctor"):
        assert "is gone" in shell.run(*command.split(), status=1).output
    assert "restore it" in shell.refusal("migrate")
    assert not shell.database.exists()


@pytest.mark.parametrize("left", ["service-views.db", "service-stores.db", "service.db-wal"])
def test_one_other_file_is_enough_to_miss_the_log(shell: Shell, left: str) -> None:
    shell.new_organization()
    kept = shell.database.with_name(left)
    kept.touch()
    for file in shell.database.parent.glob("service*"):
        if file != kept and file.is_file():
            file.unlink()
    assert "is gone" in shell.refusal("migrate")
    assert "is gone" in shell.run("serve", status=1).output.splitlines()[-1]
    assert not shell.database.exists()


def test_an_empty_log_is_not_begun_anew_beside_read_models_that_saw_another(shell: Shell) -> None:
    shell.new_organization()
    shell.run("org", "list")  # It projects what the log holds.
    shell.rewrite("DELETE FROM stored_events")
    assert "is empty" in shell.refusal("migrate")
    for end in ("", "-wal", "-shm"):
        shell.database.with_name(f"service.db{end}").unlink(missing_ok=True)
    shell.database.touch()
    assert "is empty" in shell.refusal("migrate")
    assert "is empty" in shell.run("serve", status=1).output.splitlines()[-1]


def test_a_log_that_has_lost_its_end_is_told_before_it_is_built_upon(shell: Shell) -> None:
    shell.new_organization()
    shell.run("org", "list")  # It projects what the log holds.
    shell.rewrite("DELETE FROM stored_events WHERE rowid > 1")
    assert "no longer holds the event" in shell.refusal("org", "list")
    assert "no longer holds the event" in shell.run("doctor", status=1).stdout
    (cut,) = shell.json("audit", "verify", status=1)["failures"]
    assert (cut["position"], "up to 3 were given out" in cut["reason"]) == (2, True)
    built = shell.run("migrate")
    assert "Warning: the log no longer holds the event" in built.stderr
    assert "organizations" in built.stdout


LINE = "the clock of this machine is 3600.0 s behind the database's"


@pytest.mark.parametrize(
    "command",
    [("org", "create", "--name", "Acme"), ("work", "retry"), ("migrate",), ("backup", "copy")],
    ids=" ".join,
)
def test_nothing_is_written(
    shell: Shell, command: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(Database, "server_time", lambda _: utc_now() + timedelta(hours=1))
    assert shell.run("org", "list").stderr == ""
    assert shell.refusal(*command) == LINE
    assert not (tmp_path / "copy").exists()
