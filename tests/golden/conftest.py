"""The installation whose tables are compared with those of earlier releases."""

from tests.installation import installation, migrated, process

__all__ = ["installation", "migrated", "process"]
