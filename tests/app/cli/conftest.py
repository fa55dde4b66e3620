"""The fixtures of the command line: an empty place, and an installation with its tables."""

import shutil
from pathlib import Path

import pytest

from app.processes import migrate
from tests.app.cli.shell import Shell


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
