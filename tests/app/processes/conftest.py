"""An installation with its tables, for processes of their own."""

from pathlib import Path

import pytest

from tests.app.cli.shell import Shell


@pytest.fixture
def nowhere(tmp_path: Path) -> Shell:
    """No tables, no keys."""
    return Shell(tmp_path)


@pytest.fixture
def shell(nowhere: Shell) -> Shell:
    nowhere.run("migrate")
    return nowhere
