"""One installation per test, and the process that the test looks from."""

from tests.installation import installation, migrated, process

__all__ = ["installation", "migrated", "process"]
