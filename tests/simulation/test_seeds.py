"""Whatever dies, is lost, doubled or late: eight seeds; two thousand with SOAK=1.

SIMULATION_SEEDS=n runs the first n of them.
"""

import os
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.simulation.simulation import Failed, Simulation

SOAK = os.environ.get("SOAK") == "1"
# What eight seeds do not see `test_mutants` tries with seeds that do, bug by bug.
SEEDS = int(os.environ.get("SIMULATION_SEEDS") or (2_000 if SOAK else 8))
GROUP = 4  # Of seeds: so small that each test ends well within its time.
REPLAYED = int(os.environ.get("SIMULATION_SEED", "0"))
LOOKED_AT = 40
SEE_ALL = (10, 8, 1, 0)  # Together they have seen everything; if they no longer do, others follow.
# Each has shown a bug that those before it had not; the first of these one that was planted.
ONCE_FAILED = (46, 1333, 1780)
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
    "make it suspended",
    "cancel it",
    "cancel the job",
    "JOB_FINISHED",
    "imports a link",
    "no answer",
)
TWICE = """
import itertools, sys, tempfile, time
from pathlib import Path

real = time.monotonic
slow = itertools.count(step=60)
time.monotonic = lambda: real() + next(slow)  # A machine that is slow beyond measure.

from tests.simulation.simulation import Simulation
from tests.simulation.template import make_template
with tempfile.TemporaryDirectory() as files, tempfile.TemporaryDirectory() as directory:
    simulation = Simulation(int(sys.argv[1]), make_template(Path(files)), Path(directory))
    simulation.run()
    print("\\n".join(simulation.world.script))
"""

Run = Callable[[int], Simulation]
Script = Callable[[int], list[str]]


@pytest.fixture(scope="module")
def told() -> dict[int, list[str]]:
    """The scripts of the seeds that were run; a seed tells the same whenever it runs."""
    return {}


@pytest.fixture
def script(run: Run, told: dict[int, list[str]]) -> Script:
    """Return the script of a seed, which has to end well; each runs once for all tests."""

    def of(seed: int) -> list[str]:
        if seed not in told:
            simulation = run(seed)
            assert simulation.ended_well
            told[seed] = simulation.world.script
        return told[seed]

    return of


@pytest.mark.rounds
@pytest.mark.parametrize("first", range(0, SEEDS, GROUP))
def test_whatever_goes_wrong_everything_ends_well(script: Script, first: int) -> None:
    for seed in range(first, first + GROUP):
        assert script(seed)


@pytest.mark.parametrize("seed", ONCE_FAILED)
def test_a_seed_that_once_failed_ends_well(script: Script, seed: int) -> None:
    assert script(seed)


def test_the_runs_see_every_kind_of_trouble(script: Script) -> None:
    seen: Counter[str] = Counter()
    for seed in dict.fromkeys((*SEE_ALL, *range(LOOKED_AT))):
        seen.update(what for what in MUST_BE_SEEN for line in script(seed) if what in line)
        if len(seen) == len(MUST_BE_SEEN):
            return
    assert [what for what in MUST_BE_SEEN if not seen[what]] == []


@pytest.mark.soak
def test_a_seed_is_the_same_in_each_process(script: Script) -> None:
    """Whatever order the sets of that process have, and however slow its machine is."""
    root = Path(__file__).parents[2]
    again = subprocess.run(
        [sys.executable, "-c", TWICE, "7"],
        capture_output=True,
        check=True,
        cwd=root,
        env={**os.environ, "PYTHONHASHSEED": "17"},
        text=True,
    )
    assert again.stdout.splitlines() == script(7)


def test_a_replay_shows_every_step(script: Script, capsys: pytest.CaptureFixture[str]) -> None:
    """With SIMULATION_SEED=n that seed is replayed, and shown also when it fails."""
    lines: list[str] = []
    try:
        lines = script(REPLAYED)
    except Failed as failed:
        lines = failed.script
        raise
    finally:
        if "SIMULATION_SEED" in os.environ:
            with capsys.disabled():
                print("", *lines, sep="\n")  # noqa: T201  # It is what was asked for.
    assert any("all is well again" in line for line in lines)
