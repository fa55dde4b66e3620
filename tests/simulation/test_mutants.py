"""The simulation finds bugs: each of these, planted into the product, makes some seed fail."""

import pytest

from tests.simulation.conftest import Runs
from tests.simulation.mutants import PLANTS
from tests.simulation.simulation import Failed

TRIES_MAX = 40  # Seeds; those of `test_seeds` that need no planted bug to be tried.
QUICK = 4  # Of the bugs: the simulation is awake; `make soak` plants all.


@pytest.mark.parametrize(
    "name",
    [pytest.param(each, marks=[pytest.mark.soak] * (n >= QUICK)) for n, each in enumerate(PLANTS)],
)
def test_a_planted_bug_makes_a_seed_fail(
    run: Runs, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    plant, kind, known = PLANTS[name]
    plant(monkeypatch)
    with pytest.raises(Failed):
        _ = [run(seed, kind) for seed in (known, *range(TRIES_MAX))]
