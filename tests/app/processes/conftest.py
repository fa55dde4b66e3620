"""An installation with its tables, for processes of their own."""

from tests.app.cli.conftest import migrated_home, nowhere, shell

__all__ = ["migrated_home", "nowhere", "shell"]
