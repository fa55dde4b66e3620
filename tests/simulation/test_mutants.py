"""The simulation finds bugs: each of these, planted into the product, makes some seed fail."""

import pytest

from tests.simulation.conftest import Run, fails
from tests.simulation.mutants import PLANTS, Plant

TRIES_MAX = 40  # Seeds; those of `test_seeds` that need no planted bug to be tried.


@pytest.mark.parametrize("plant", PLANTS, ids=lambda plant: plant.__name__)
def test_a_planted_bug_makes_a_seed_fail(
    run: Run, plant: Plant, monkeypatch: pytest.MonkeyPatch
) -> None:
    plant(monkeypatch)
    assert fails(run, (*PLANTS[plant], *range(TRIES_MAX)))
