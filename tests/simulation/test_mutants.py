"""The simulation finds bugs: each of these, planted into the product, makes some seed fail."""

import pytest

from tests.simulation.conftest import Runs
from tests.simulation.mutants import PLANTS, Plant
from tests.simulation.simulation import Failed

TRIES_MAX = 40  # Seeds; those of `test_seeds` that need no planted bug to be tried.


@pytest.mark.parametrize("plant", PLANTS, ids=lambda plant: plant.__name__)
def test_a_planted_bug_makes_a_seed_fail(
    run: Runs, plant: Plant, monkeypatch: pytest.MonkeyPatch
) -> None:
    kind, *known = PLANTS[plant]
    plant(monkeypatch)
    with pytest.raises(Failed):
        _ = [run(seed, kind) for seed in (*known, *range(TRIES_MAX))]
