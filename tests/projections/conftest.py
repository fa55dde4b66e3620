"""One installation per test, the process that the test looks from, and what it stands still at."""

from uuid import UUID

import pytest

from tests.installation import Process, SetClock


@pytest.fixture
def clock(process: Process) -> SetClock:
    """The clock of the process, which a test moves."""
    process.clock = clock = SetClock()
    return clock


@pytest.fixture
def organization_id(process: Process, clock: SetClock) -> UUID:
    """An organization with 100.00."""
    assert process.clock is clock
    return process.organization()
