"""The comparison tells a change of what is done, with the request at which it shows."""

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from tests.simulation.compare import first_difference
from tests.simulation.mutants import PLANTS, Plant, at_the_network, twice
from tests.simulation.replay import Quiet, Replay
from tests.simulation.template import Template

SEEDS_MAX = 6


def replayed(seed: int, template: Template) -> list[dict[str, Any]]:
    with TemporaryDirectory() as directory:
        return [*Replay(seed, template, Path(directory), Quiet).run()]


@pytest.mark.parametrize(
    ("plant", "what"),
    [
        (PLANTS["a_failure_is_not_refunded"][0], "wallet entries"),
        (at_the_network(suspend=twice), "calls"),
    ],
)
def test_what_is_done_otherwise_is_told(
    template: Template, monkeypatch: pytest.MonkeyPatch, plant: Plant, what: str
) -> None:
    for seed in range(SEEDS_MAX):
        before = replayed(seed, template)
        assert first_difference(before, before) is None
        with monkeypatch.context() as patch:
            plant(patch)
            difference = first_difference(before, replayed(seed, template))
        if difference is not None:
            assert difference.startswith("request ")
            assert what in difference.splitlines()[1]
            return
    pytest.fail("nothing is told")
