"""The row of links on scripted networks runs, and holds how many calls a request makes."""

import pytest

from tests.bench.rows import remote_links

DELAY_S = 0.02


@pytest.mark.soak
@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "calls"),
    [("bics", [(6, 2), (3, 1)]), ("esimgo", [(4, 1), (3, 1)])],
)
def test_a_creation_and_a_topup_make_as_few_calls(name: str, calls: list[tuple[int, int]]) -> None:
    opened = {"bics": remote_links.on_bics, "esimgo": remote_links.on_esimgo}[name]
    with opened() as shop:
        rows = [*remote_links.rows_of(name, shop, 2, DELAY_S)]
    assert [(row.ours, row.limit) for row in rows if row.unit == "calls"] == calls
    network_ms = [row.limit for row in rows if row.name.endswith("added at p50")]
    assert network_ms == pytest.approx([many * DELAY_S * 1000 for many, _ in calls])
    assert all(row.ours > 0 for row in rows)
