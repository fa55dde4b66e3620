"""One installation per test, the process that the test looks from, and a lab for its links."""

import pytest

from tests.installation import Installation, Process, SetClock
from tests.workers.link_lab import lab
from tests.workers.order_lab import orders

__all__ = ["lab", "orders"]


@pytest.fixture
def process(installation: Installation, clock: SetClock) -> Process:
    return installation.process(clock)
