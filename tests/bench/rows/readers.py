"""Reads in threads of Flask: a crowd must cost no more than a few."""

from collections.abc import Iterator

from tests.bench.row import Aim, Row
from tests.bench.rows.lookups import installation

FEW, CROWD = 8, 64
WARM_S, DURATION_S = 1.0, 4.0


def measure() -> Iterator[Row]:
    with installation() as made, made.ours() as ours:
        ours.bear(made.readers(CROWD, ours.port, WARM_S))
        _, cost_of_few = ours.bear(made.readers(FEW, ours.port, DURATION_S))
        _, cost = ours.bear(made.readers(CROWD, ours.port, DURATION_S))
    name = f"a wallet read by {CROWD}, beside {FEW} clients"
    yield Row(f"{name}, processor time", cost, cost_of_few, "µs", Aim(ratio_max=1.3))
