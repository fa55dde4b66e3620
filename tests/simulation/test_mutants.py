"""The simulation finds bugs: each of these, planted into the product, makes some seed fail."""

import pytest

from tests.simulation.conftest import Run
from tests.simulation.mutants import PLANTS, Plant
from tests.simulation.simulation import Failed

TRIES_MAX = 40  # Seeds; those of `test_seeds` that need no planted bug to be tried.


@pytest.mark.parametrize("plant", PLANTS, ids=lambda plant: plant.__name__)
def test_a_planted_bug_makes_a_seed_fail(
    run: Run, plant: Plant, monkeypatch: pytest.MonkeyPatch
) -> None:
    plant(monkeypatch)
    assert any(_fails(run, seed) for seed in (*PLANTS[plant], *range(TRIES_MAX)))


def _fails(run: Run, seed: int) -> bool:
    try:
        run(seed)
    except Failed:
        return True
    return False
