"""A second try is for what lost a race against a server, and hides nothing else."""

import json
import subprocess
import sys
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from tests.servers import second_try
from tests.tidy.source import ROOT

RACE = "test_sample.py::test_it_races_a_server"
ENDED = {"status": 1, "is_whole": True, "failed": {RACE: True}}
CONFTEST = f"""
import sys
sys.path.insert(0, {str(ROOT)!r})
from tests.servers.second_try import NEEDS_SERVER, Outcome

def pytest_configure(config):
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(Outcome())

def pytest_collection_modifyitems(items):
    for item in items:
        if "server" in item.name:
            item.user_properties.append(NEEDS_SERVER)
"""
RACING = """
from pathlib import Path

def test_it_races_a_server():
    tries = Path("tries")
    tries.write_text(tries.read_text() + "x" if tries.exists() else "x")
    assert len(tries.read_text()) == 2

def test_another():
    pass
"""
# As an error of pytest, or of a plugin, which ends the run before any test.
INTERNAL = "\ndef pytest_runtestloop():\n    raise RuntimeError\n"


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory that holds one file of tests, as the root of a repository does."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")  # They take longer than the tests.
    (tmp_path / "conftest.py").write_text(CONFTEST)
    (tmp_path / "test_sample.py").write_text(RACING)
    second_try.FLAKY.parent.mkdir()
    second_try.FLAKY.write_text(f"# Why.\n{date.today()} {RACE}\n")  # noqa: DTZ011  # As main reads it, but for a midnight.
    return tmp_path


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "pytest", "-q", "-p", "xdist", *arguments]


def first_try(*arguments: str) -> int:
    return subprocess.run(command(*arguments), check=False).returncode


def second_try_of(tree: Path, record: bytes, named: str) -> int:
    """Try again after a run that has left this record; the race was lost once."""
    second_try.RECORD.write_bytes(record)
    (tree / "tries").write_text("x")
    second_try.FLAKY.write_text(named)
    return second_try.main(command())


def test_who_lost_a_race_may_pass_at_the_second_try_if_it_is_named(
    tree: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    named = second_try.FLAKY.read_text()
    assert first_try("-n", "2") == 1
    record = second_try.RECORD.read_bytes()
    assert second_try_of(tree, record, named) == 0
    assert (tree / "tries").read_text() == "xx"
    assert second_try_of(tree, record, "") == 1
    assert f"{RACE} passes only at the second try" in capfd.readouterr().err
    assert (tree / "tries").read_text() == "xx"


def test_what_is_broken_stays_so_and_a_run_without_tests_leaves_nothing_to_try_again(
    tree: Path,
) -> None:
    (tree / "test_sample.py").write_text(RACING.replace("== 2", "== 0"))
    assert first_try() == 1
    assert second_try.main(command()) == 1
    (tree / "conftest.py").write_text(CONFTEST + INTERNAL)
    assert first_try() == 3
    (tree / "conftest.py").write_text(CONFTEST)
    (tree / "test_sample.py").write_text(RACING.replace("== 2", "> 0"))
    assert second_try.main(command()) == 1


@pytest.mark.parametrize(
    ("ended", "reason"),
    [
        (None, "has not come to its end"),
        ({**ENDED, "status": 2}, "ended with 2"),
        ({**ENDED, "status": 3}, "ended with 3"),
        ({**ENDED, "is_whole": False}, "not every test ran"),
        ({**ENDED, "failed": {RACE: True, "test_a.py::test_b": False}}, "test_b needs no server"),
    ],
)
def test_there_is_none_after_any_other_end(ended: dict[str, Any] | None, reason: str) -> None:
    assert reason in (second_try.refusal(ended) or "")
    assert second_try.refusal(json.loads(json.dumps(ENDED))) is None


@pytest.mark.parametrize(
    ("line", "is_late"),
    [
        (f"2026-11-28 {RACE}", False),
        (f"2026-11-14 {RACE}", False),
        (f"2026-11-13 {RACE}", True),
        (f"2026-11-29 {RACE}", True),  # Whoever dates it ahead has more than 14 days.
        (f"# 2026-11-28 {RACE}", True),
        (f"2026-11-28 {RACE}[1]", True),
    ],
)
def test_a_name_holds_for_fourteen_days(line: str, is_late: bool) -> None:  # noqa: FBT001  # A row of the table.
    assert second_try.overdue([RACE], line, date(2026, 11, 28)) == ([RACE] if is_late else [])
