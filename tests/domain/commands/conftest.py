"""One installation per test, and the process that the test looks from."""

from tests.installation import installation, process

__all__ = ["installation", "process"]
