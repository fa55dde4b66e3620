"""One installation per test, the process that the test looks from, and a lab for its links."""

from tests.installation import installation, migrated, process
from tests.workers.link_lab import lab
from tests.workers.order_lab import orders

__all__ = ["installation", "lab", "migrated", "orders", "process"]
