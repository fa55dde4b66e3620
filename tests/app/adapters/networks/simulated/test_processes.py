"""Processes and threads that change the same things at once lose nothing of each other."""

import subprocess
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

from app.adapters.networks.simulated.inventory import CHUNK_ESIMS, PAGE_ESIMS
from tests.contracts.esim_networks import PLAN, TIMEOUT_S, SimulatedSide, a_link
from tests.installation import PATIENCE_S

ROOT = Path(__file__).parents[5]
CREATE = """
import sys
from pathlib import Path

from tests.contracts.esim_networks import BASE_PLAN, PLAN, SPONSOR, SimulatedSide

network = SimulatedSide(Path(sys.argv[1])).connect()
for esim in network.available_esims(PLAN, SPONSOR, "", page=0, timeout_s=60.0):
    made = network.create_endpoint(esim.iccid, PLAN, BASE_PLAN, "link-1", timeout_s=60.0)
    print(made.endpoint_id)
"""


def at_once(works: Sequence[Callable[[], object]]) -> None:
    """Run all of these in threads that start together; raises what any of them raises."""
    together = Barrier(len(works))

    def run(work: Callable[[], object]) -> None:
        together.wait(PATIENCE_S)
        work()

    with ThreadPoolExecutor(len(works)) as pool:
        list(pool.map(run, works))


def test_programs_that_start_at_once_make_the_same_stock_and_endpoints(
    side: SimulatedSide, tmp_path: Path
) -> None:
    command = [sys.executable, "-c", CREATE, str(tmp_path)]
    programs = [
        subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) for _ in range(2)
    ]
    made = [program.communicate(timeout=60)[0].split() for program in programs]

    assert [program.returncode for program in programs] == [0, 0]
    # Whoever looks later finds the next page; each ICCID was made by the first who asked for it.
    with side.database().reading() as connection:
        endpoints = connection.exec_driver_sql("SELECT endpoint_id FROM simulated_endpoints")
        assert {row[0] for row in endpoints} == {name for names in made for name in names}
        serials = connection.exec_driver_sql("SELECT serial FROM simulated_esims ORDER BY serial")
        assert [row[0] for row in serials] == [*range(1, CHUNK_ESIMS + 1)]
    assert {len(names) for names in made} == {PAGE_ESIMS}


def test_additions_removals_and_pauses_at_once_are_all_kept(side: SimulatedSide) -> None:
    networks = [side.connect() for _ in range(3)]
    endpoint_id = a_link(networks[0])
    side.clock.forward(hours=5)
    (first,) = networks[0].usage(endpoint_id, timeout_s=TIMEOUT_S).addons

    def add(number: int) -> Callable[[], object]:
        network = networks[number % 3]
        reference = f"topup-{number // 2}"  # Each is asked for twice.
        return lambda: network.add_plan(endpoint_id, PLAN, reference, timeout_s=TIMEOUT_S).addon_id

    at_once(
        [
            *(add(number) for number in range(8)),
            lambda: networks[0].remove_plan(endpoint_id, first.addon_id, timeout_s=TIMEOUT_S),
            lambda: networks[1].suspend(endpoint_id, timeout_s=TIMEOUT_S),
            lambda: networks[2].suspend(endpoint_id, timeout_s=TIMEOUT_S),
        ]
    )

    usage = side.connect().usage(endpoint_id, timeout_s=TIMEOUT_S)
    assert usage.status == "suspended"
    assert len(usage.addons) == 4
    assert first.addon_id not in {addon.addon_id for addon in usage.addons}


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
