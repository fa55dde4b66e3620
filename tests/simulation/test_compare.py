"""The comparison tells a change of what is done, with the request at which it shows."""

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from msgspec.structs import replace

from domain.accounts.wallet import Refund, Wallet
from domain.cause import Cause
from tests.simulation.compare import first_difference
from tests.simulation.mutants import Plant
from tests.simulation.outside import WatchedNetwork
from tests.simulation.replay import Quiet, Replay
from tests.simulation.template import Template

SEEDS_MAX = 6
Told = list[dict[str, Any]]


def replayed(seed: int, template: Template) -> Told:
    with TemporaryDirectory() as directory:
        return [*Replay(seed, template, Path(directory), Quiet).run()]


def another_refund(patch: pytest.MonkeyPatch) -> None:
    refund = Wallet.refund

    def less(self: Wallet, entry: Refund, cause: Cause) -> None:
        refund(self, replace(entry, amount_micros=entry.amount_micros - 1), cause)

    patch.setattr(Wallet, "refund", less)


def a_call_twice(patch: pytest.MonkeyPatch) -> None:
    class Twice(WatchedNetwork):
        def suspend(self, *args: Any, **options: Any) -> None:
            for _ in range(2):
                super().__getattr__("suspend")(*args, **options)

    patch.setattr(Quiet, "reach", lambda world, machine: Twice(machine, world.late))


@pytest.mark.parametrize(
    ("plant", "what"), [(another_refund, "wallet entries"), (a_call_twice, "calls")]
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
