"""One installation per test, the process that the test looks from, and a lab for its links."""

from tests.installation import timed
from tests.workers.link_lab import lab
from tests.workers.order_lab import orders

__all__ = ["lab", "orders"]

process = timed
