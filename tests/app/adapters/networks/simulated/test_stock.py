"""The stock follows from the seed, never runs out, and gives each eSIM to one caller only."""

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest

from app.adapters.networks.simulated.inventory import CHUNK_ESIMS, PAGE_ESIMS
from app.adapters.networks.simulated.network import SimulatedNetwork
from domain.provider_errors import Rejected
from tests.app.adapters.networks.simulated.links import create
from tests.contracts.esim_networks import PLAN, SPONSOR, TIMEOUT_S, SimulatedSide
from tests.installation import PATIENCE_S, Process, postgresql_only


def stock(network: SimulatedNetwork, page: int = 0, sponsor: str | None = SPONSOR) -> list[str]:
    return [*network.available_esims(PLAN, sponsor, "", page=page, timeout_s=TIMEOUT_S)]


def made_esims(side: SimulatedSide) -> int:
    with side.database().reading() as connection:
        rows = connection.exec_driver_sql("SELECT count(*) FROM simulated_esims").scalar_one()
    return int(rows)


def test_the_stock_of_each_sponsor_profile_is_the_same_wherever_the_seed_is(
    side: SimulatedSide, network: SimulatedNetwork
) -> None:
    before = [stock(network, page) for page in range(5)]
    network.metadata.drop_all(side.database().engine)
    network.metadata.create_all(side.database().engine)
    assert [stock(side.connect(), page) for page in range(5)] == before
    stocks = [set(stock(network, 0, sponsor)) for sponsor in ("sp-atlas", "sp-boreal", "")]
    assert len(set.union(*stocks)) == 3 * PAGE_ESIMS


def test_the_stock_never_runs_out(side: SimulatedSide, network: SimulatedNetwork) -> None:
    taken = set()
    for number in range(CHUNK_ESIMS + 10):
        iccids = stock(network)
        assert len(iccids) == PAGE_ESIMS
        create(network, iccids[0], reference=f"link-{number}")
        taken.add(iccids[0])
    assert len(taken) == CHUNK_ESIMS + 10
    assert taken.isdisjoint(stock(side.connect()))
    assert made_esims(side) == 2 * CHUNK_ESIMS


def test_processes_that_fill_the_stock_at_once_make_the_same(side: SimulatedSide) -> None:
    processes = [side.connect() for _ in range(8)]
    together = Barrier(8)

    def look(network: SimulatedNetwork) -> list[str]:
        together.wait(PATIENCE_S)
        return stock(network)

    with ThreadPoolExecutor(8) as pool:
        pages = list(pool.map(look, processes))
    assert all(page == pages[0] for page in pages)
    assert made_esims(side) == CHUNK_ESIMS


def test_an_esim_that_another_sponsor_profile_came_to_first_is_left_out(
    side: SimulatedSide, network: SimulatedNetwork
) -> None:
    second = stock(network)[1]
    with side.database().writing() as connection:
        connection.exec_driver_sql("DELETE FROM simulated_esims")
        connection.exec_driver_sql(
            "INSERT INTO simulated_esims VALUES (?, 'sp-other', 1, 1)", (second,)
        )
    refilled = stock(network)
    assert second not in refilled
    assert len(refilled) == PAGE_ESIMS


def test_an_endpoint_needs_a_base_plan(network: SimulatedNetwork) -> None:
    iccid = stock(network)[0]
    with pytest.raises(Rejected, match="base plan"):
        network.create_endpoint(iccid, PLAN, "", "link-1", timeout_s=TIMEOUT_S)
    assert iccid in stock(network)


CROWD = 30  # More than the connections of a process.


@postgresql_only("a pool of connections")
def test_a_crowd_at_an_empty_stock_is_served(process: Process) -> None:
    network, together = process.bare_network, Barrier(CROWD)

    def look(_: int) -> int:
        together.wait(PATIENCE_S)
        return len(network.available_esims(PLAN, SPONSOR, "", page=0, timeout_s=PATIENCE_S))

    with ThreadPoolExecutor(CROWD) as pool:
        assert all(pool.map(look, range(CROWD)))
