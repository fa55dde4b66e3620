"""The comparison tells a change of what is done, with the request at which it shows."""

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from tests.simulation.compare import first_difference
from tests.simulation.mutants import PLANTS, at_the_network, twice
from tests.simulation.replay import Quiet, Replay
from tests.simulation.template import Template

SEED = 0  # One that suspends, and whose link fails.


def replayed(template: Template) -> list[dict[str, Any]]:
    with TemporaryDirectory() as directory:
        return [*Replay(SEED, template, Path(directory), Quiet).run()]


def test_what_is_done_otherwise_is_told(
    template: Template, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = replayed(template)
    for plant, what in (
        (PLANTS["a_failure_is_not_refunded"][0], "wallet entries"),
        (at_the_network(suspend=twice), "calls"),
    ):
        with monkeypatch.context() as patch:
            plant(patch)
            difference = first_difference(before, replayed(template))
        assert difference is not None
        assert difference.startswith("request ")
        assert what in difference.splitlines()[1]
    assert first_difference(before, replayed(template)) is None
