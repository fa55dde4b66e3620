"""The far side of the network that a room is named after, and the adapter that calls it."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.contracts.esim_networks import AiraloSide, BicsSide, EsimGoSide, SimulatedSide
from tests.installation import SetClock

SIDES = {"airalo": AiraloSide, "bics": BicsSide, "esimgo": EsimGoSide, "simulated": SimulatedSide}


@pytest.fixture
def side(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Any]:
    with closing(SIDES[request.path.parent.name](tmp_path)) as made:
        yield made


@pytest.fixture
def server(side: Any) -> Any:
    return side.server


@pytest.fixture
def clock(side: Any) -> SetClock:
    made: SetClock = side.clock
    return made


@pytest.fixture
def network(side: Any) -> Any:
    return side.connect()
