"""Processes and threads that change the same things at once lose nothing of each other."""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

from tests.contracts.esim_networks import TIMEOUT_S, SimulatedSide, a_link
from tests.installation import PATIENCE_S


def at_once(works: Sequence[Callable[[], object]]) -> None:
    """Run all of these in threads that start together; raises what any of them raises."""
    together = Barrier(len(works))

    def run(work: Callable[[], object]) -> None:
        together.wait(PATIENCE_S)
        work()

    with ThreadPoolExecutor(len(works)) as pool:
        list(pool.map(run, works))


def test_reads_never_see_half_of_a_change(side: SimulatedSide) -> None:
    """What is settled moves from the clock into the row; a look in between must not count both."""
    writer, reader = side.connect(), side.connect()
    endpoint_id = a_link(writer)
    side.clock.forward(hours=10)
    before = writer.usage(endpoint_id, timeout_s=TIMEOUT_S)

    def pause() -> None:
        for _ in range(40):
            writer.suspend(endpoint_id, timeout_s=TIMEOUT_S)
            writer.resume(endpoint_id, timeout_s=TIMEOUT_S)

    def look() -> None:
        for _ in range(150):
            assert reader.usage(endpoint_id, timeout_s=TIMEOUT_S).addons == before.addons

    at_once([pause, look, look])
