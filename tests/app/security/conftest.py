"""The fixtures of the token tests: one directory, one clock, one ring over them."""

from pathlib import Path

import pytest

from app.security.keys import KeyRing
from tests.app.security.rings import NOW, ring_of
from tests.installation import SetClock


@pytest.fixture
def clock() -> SetClock:
    return SetClock(NOW)


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    return tmp_path / "var" / "keys"


@pytest.fixture
def ring(directory: Path, clock: SetClock) -> KeyRing:
    made = ring_of(directory, clock)
    made.ensure()
    return made
