"""One installation per test, and the process that the test looks from."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.app.house import House
from tests.installation import Installation, SetClock
from tests.seeds import sqlite_seed


@pytest.fixture
def house(tmp_path: Path) -> Iterator[House]:
    installation, clock = Installation(tmp_path, like=sqlite_seed()), SetClock()
    yield House(installation.process(clock), clock)
    installation.close()
