"""Whatever dies, is lost, doubled or late: eight seeds; two thousand with SOAK=1.

SIMULATION_SEEDS=n runs the first n of them.
"""

import os

import pytest

from tests.simulation.conftest import Runs

SOAK = os.environ.get("SOAK") == "1"
# What eight seeds do not see `test_mutants` tries with seeds that do, bug by bug.
SEEDS = int(os.environ.get("SIMULATION_SEEDS") or (2_000 if SOAK else 8))
GROUP = 4  # Of seeds: so small that each test ends well within its time.
ORDERS = SEEDS // 4 if SEEDS > 100 else SEEDS  # Of these where the network sells by order.
SEE_ALL = (0, 1, 8)  # Together they have seen everything; if they no longer do, others follow.
MUST_BE_SEEN = (  # In a few runs together, else the others prove little.
    "dies before a commit",
    "dies after a commit",
    "dies after a publish",
    "dies before a position is committed",
    "dies after create_endpoint",
    "is lost",
    "is unavailable",
    "meanwhile:",
    "a twin states the same intent",
    "could not dispatch",
    "a month ends",
    "INSUFFICIENT_BALANCE",
    "PROVISIONING_ERROR",
    "to suspend link",
    "to cancel link",
    "to drop job",
    "JOB_FINISHED",
    "to import: (200",
    "no answer",
)
SCRIPTS: dict[int, list[str]] = {}  # Of the seeds that were run; each tells the same again.


def script(run: Runs, seed: int) -> list[str]:
    """Return the script of a seed, which has to end well."""
    if seed not in SCRIPTS:
        SCRIPTS[seed] = run(seed).world.script
    return SCRIPTS[seed]


@pytest.mark.rounds
@pytest.mark.parametrize("first", range(0, SEEDS, GROUP))
def test_whatever_goes_wrong_everything_ends_well(run: Runs, first: int) -> None:
    for seed in range(first, first + GROUP):
        script(run, seed)


@pytest.mark.rounds
@pytest.mark.parametrize("first", range(0, ORDERS, GROUP))
def test_whatever_goes_wrong_each_order_ends_in_one_place(run: Runs, first: int) -> None:
    for seed in range(first, first + GROUP):
        run(seed, "order")


def test_the_runs_see_every_kind_of_trouble(run: Runs) -> None:
    unseen = {*MUST_BE_SEEN}
    for seed in (*SEE_ALL, *range(40)):
        unseen -= {what for what in unseen for line in script(run, seed) if what in line}
        if not unseen:
            return
    assert unseen == set()
