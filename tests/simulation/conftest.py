"""The installation that every run is a copy of; what is foreseen to fail is logged nowhere."""

import logging
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from tests.simulation.simulation import Simulation
from tests.simulation.template import Template, make_template

Run = Callable[[int], Simulation]


@pytest.fixture(scope="session")
def template(tmp_path_factory: pytest.TempPathFactory) -> Template:
    return make_template(tmp_path_factory.mktemp("simulated"))


@pytest.fixture
def run(template: Template, tmp_path: Path) -> Iterator[Run]:
    """Run a seed to its end in a directory of its own."""

    def ran(seed: int) -> Simulation:
        with TemporaryDirectory(dir=tmp_path) as directory:
            simulation = Simulation(seed, template, Path(directory))
            simulation.run()
        return simulation

    logging.disable(logging.CRITICAL)
    yield ran
    logging.disable(logging.NOTSET)
