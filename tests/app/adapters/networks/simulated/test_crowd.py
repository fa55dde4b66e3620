"""Many calls at an empty stock: none holds a connection while it waits for another."""

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

from tests.contracts.esim_networks import PLAN, SPONSOR
from tests.installation import PATIENCE_S, Process, postgresql_only

CROWD = 30  # More than the connections of a process.


@postgresql_only("a pool of connections")
def test_a_crowd_at_an_empty_stock_is_served(process: Process) -> None:
    network, together = process.bare_network, Barrier(CROWD)

    def look(_: int) -> int:
        together.wait(PATIENCE_S)
        return len(network.available_esims(PLAN, SPONSOR, "", page=0, timeout_s=PATIENCE_S))

    with ThreadPoolExecutor(CROWD) as pool:
        assert all(pool.map(look, range(CROWD)))
