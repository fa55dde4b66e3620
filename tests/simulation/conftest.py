"""The installation that every run is a copy of; what is foreseen to fail is logged nowhere."""

import logging
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from tests.simulation.simulation import Failed, Simulation
from tests.simulation.template import Template, make_template

Run = Callable[[int], Simulation]


@pytest.fixture(scope="session")
def template(tmp_path_factory: pytest.TempPathFactory) -> Template:
    return make_template(tmp_path_factory.mktemp("simulated"))


@pytest.fixture
def run(template: Template, tmp_path: Path) -> Iterator[Run]:
    """Run a seed to its end."""
    logging.disable(logging.CRITICAL)
    yield running(template, tmp_path)
    logging.disable(logging.NOTSET)


def running(template: Template, within: Path, *world: Any) -> Run:
    """Return what runs a seed to its end, in a directory of its own."""

    def ran(seed: int) -> Simulation:
        with TemporaryDirectory(dir=within) as directory:
            simulation = Simulation(seed, template, Path(directory), *world)
            simulation.run()
        return simulation

    return ran


def fails(run: Run, seeds: Iterable[int]) -> bool:
    """Tell whether one of these seeds fails."""
    for seed in seeds:
        try:
            run(seed)
        except Failed:
            return True
    return False
