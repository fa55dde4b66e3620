"""An installation in a directory of its own, and the two ways to run commands on it."""

import json
import os
import shutil
import sqlite3
import subprocess
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from click.testing import CliRunner, Result

from app.cli import session
from app.cli.root import PROGRAM, cli
from app.processes import migrate
from app.settings import Settings, name_of
from domain.cause import Clock, utc_now
from tests.installation import Installation, Parts
from tests.support import warm

ROOT = Path(__file__).parents[3]
SETTINGS = [name_of(each.name) for each in fields(Settings)]
TIMEOUT_S = 60


session.Container = Parts  # For each command that runs in this process.


@dataclass(frozen=True)
class Shell:
    """Runs commands against one installation; the real environment has no influence."""

    home: Path
    changes: Mapping[str, str] = field(default_factory=dict)

    def having(self, **changes: str) -> "Shell":
        return Shell(self.home, {**self.changes, **changes})

    @property
    def environment(self) -> dict[str, str]:
        return {
            "DATABASE_URL": f"sqlite:///{self.home}/var/service.db",
            "SIGNING_KEYS": f"{self.home}/var/keys",
            "TOKEN_ALGORITHM": "ES256",
            **self.changes,
        }

    @property
    def process_environment(self) -> dict[str, str]:
        """That of a process of its own: what is around the tests, but for the settings."""
        around = {name: value for name, value in os.environ.items() if name not in SETTINGS}
        return around | self.environment

    @property
    def database(self) -> Path:
        return Settings.from_env(self.environment).database_path

    def container(self, clock: Clock = utc_now) -> Parts:
        return Parts(Settings.from_env(self.environment), clock)

    def run(self, *arguments: object, status: int = 0, input: str | None = None) -> Result:  # noqa: A002  # As click calls it.
        """Run a command in this process and expect its exit status."""
        unset: dict[str, str | None] = dict.fromkeys(SETTINGS)
        runner = CliRunner(env=unset | self.environment)
        result = runner.invoke(cli, [*map(str, arguments)], input, prog_name=PROGRAM)
        assert isinstance(result.exception, SystemExit | None), result.exception
        assert result.exit_code == status, result.output
        return result

    def json(self, *arguments: object, status: int = 0) -> Any:
        """Return the one JSON object that is all a command prints."""
        result = self.run(*arguments, "--json", status=status)
        assert result.stderr == "", result.stderr
        assert result.stdout.count("\n") == 1
        printed = json.loads(result.stdout)
        assert isinstance(printed, dict)
        return printed

    def refusal(self, *arguments: object, status: int = 1) -> str:
        """Return the one line on standard error that is all a refused command prints."""
        result = self.run(*arguments, status=status)
        assert result.stdout == ""
        lines = result.stderr.splitlines()
        assert lines[-1].startswith("Error: "), lines
        assert status != 1 or len(lines) == 1, lines
        return lines[-1].removeprefix("Error: ")

    def start(self, *arguments: object, **options: Any) -> subprocess.Popen[str]:
        """Start a command as a process of its own."""
        options = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE} | options
        return warm.start([*map(str, arguments)], self.process_environment, text=True, **options)

    def process(self, *arguments: object) -> tuple[int, str, str]:
        """Run a command as a process of its own: exit status, standard output and error."""
        with self.start(*arguments) as started:
            out, err = started.communicate(timeout=TIMEOUT_S)
        return started.returncode, out, err

    def rewrite(self, statement: str, *values: object, file: str = "service.db") -> None:
        """Change the log, or another file of the database, as no command does."""
        with closing(sqlite3.connect(self.database.with_name(file))) as database, database:
            assert database.execute(statement, values).rowcount, statement

    def new_organization(self, *options: str) -> UUID:
        return UUID(self.json("org", "create", "--name", "Acme", *options)["id"])


def shell_of(installation: Installation) -> Shell:
    return Shell(installation.directory, installation.environment)


@pytest.fixture
def nowhere(tmp_path: Path) -> Shell:
    """No tables, no keys."""
    return Shell(tmp_path)


@pytest.fixture(scope="session")
def migrated_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A place with tables, to be copied: a migration takes longer than most commands."""
    home = tmp_path_factory.mktemp("migrated")
    Shell(home).run("migrate")
    return home


@pytest.fixture
def shell(nowhere: Shell, migrated_home: Path, monkeypatch: pytest.MonkeyPatch) -> Shell:
    """An installation whose commands, in this process, trust that its own tables are up to date.

    They are, and to look takes more than a third of most commands.
    """
    shutil.copytree(migrated_home, nowhere.home, dirs_exist_ok=True)
    monkeypatch.setattr(migrate, "is_migrated", lambda of: of.persistence.has_all_files())
    return nowhere


@pytest.fixture
def organization(shell: Shell) -> UUID:
    return shell.new_organization()
