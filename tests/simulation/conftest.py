"""The installation that every run is a copy of; what is foreseen to fail is logged nowhere."""

import logging
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from tests.simulation.replay import WORLDS
from tests.simulation.simulation import Simulation
from tests.simulation.template import Template, few, make_template

Runs = Callable[..., Simulation]


@pytest.fixture(scope="session")
def template(tmp_path_factory: pytest.TempPathFactory) -> Template:
    return make_template(tmp_path_factory.mktemp("simulated"))


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


@pytest.fixture
def run(template: Template, tmp_path: Path) -> Runs:
    """Run a seed to its end, in a directory of its own."""

    def ran(seed: int, kind: str = "stock") -> Simulation:
        sold = template if kind == "stock" else few(template)
        with TemporaryDirectory(dir=tmp_path) as directory:
            simulation = Simulation(seed, sold, Path(directory), WORLDS[kind][1])
            simulation.run()
        return simulation

    return ran
