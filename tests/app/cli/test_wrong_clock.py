"""A command whose clock is wrong ends with one line before it writes; one that only reads works."""

from datetime import timedelta
from pathlib import Path

import pytest

from domain.cause import utc_now
from projections.engine.database import Database
from tests.app.cli.shell import Shell

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
