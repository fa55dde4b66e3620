"""PostgreSQL stops and starts again: every process logs it, waits, and goes on."""

import time
from collections.abc import Iterator
from copy import copy
from pathlib import Path
from threading import Event

import pytest

from tests.installation import numbers, wait_until
from tests.scenarios.conftest import partner_of
from tests.scenarios.load import grown, load
from tests.scenarios.partner import Partner, Promised
from tests.scenarios.system import PROCESSES, System, failures, new_database, unfinished
from tests.servers.postgres import PostgresServer

COMES_UP_S = 60.0
GOES_ON_S = 10.0
UNAVAILABLE = 503

pytestmark = pytest.mark.timeout(300)  # Two servers and five processes.


@pytest.fixture
def system(tmp_path: Path, postgres_up: PostgresServer, broker_url: str) -> Iterator[System]:
    """An installation on the server that a test may stop."""
    made = System(tmp_path, new_database(postgres_up), broker_url)
    yield made
    made.close()


def test_every_process_goes_on_within_ten_seconds_of_a_restart_of_the_database(
    system: System, postgres_up: PostgresServer, capsys: pytest.CaptureFixture[str]
) -> None:
    assert system.run("migrate").returncode == 0
    running = {name: system.start(name) for name in PROCESSES}
    for name, each in running.items():
        each.says("serving" if name == "web" else "is at work", COMES_UP_S)
    partner = partner_of(system)
    wait_until(lambda: partner.authorize().status == 200, COMES_UP_S)
    anyone = copy(partner)
    anyone.promised = Promised()
    with load(partner):
        wait_until(grown(partner), COMES_UP_S)
        postgres_up.stop()
        wait_until(lambda: anyone.ask("GET", "/readyz").status == UNAVAILABLE)
        wallet = anyone.ask("GET", "/v1/wallet")
        assert (wallet.status, wallet.json["error"]["code"]) == (503, "SERVICE_UNAVAILABLE")
        assert wallet.headers["retry-after"]
        assert anyone.ask("GET", "/livez").status == 200
        more = grown(partner)  # With what was in hand when the server stopped.
        postgres_up.start()
        up_at = time.monotonic()
        new_work(anyone)
        again_s = time.monotonic() - up_at
        assert anyone.ask("GET", "/readyz").status == 200
        wait_until(more, COMES_UP_S)
        in_hand_s = time.monotonic() - up_at
    with capsys.disabled():
        told = (
            f"new work done {again_s:.1f} s after the database, what was in hand {in_hand_s:.1f} s"
        )
        print(f"\n{told}")  # noqa: T201  # Figures for whoever measures.
    assert again_s < GOES_ON_S
    assert all(each.is_running() for each in running.values())
    partner.check()
    anyone.check()
    assert unfinished(system) == []
    assert failures(system) == ""


def new_work(partner: Partner) -> None:
    """Look up, let a job end, buy a link, see the charge: it takes all processes but the clock."""
    stop = Event()
    partner.look_up("+447400123456", stop)
    partner.look_up_many(numbers(100, 500_000), stop)
    newest = [*partner.promised.jobs][-1]
    path = f"/number-lookup/bulk/{newest}"
    wait_until(lambda: partner.ask("GET", path).data["status"] == "completed")
    plans = partner.ask("GET", "/v1/plans?country=FR").data["data"]
    partner.buy(plans[0]["id"], stop)
    newest = [*partner.promised.charges][-1]
    wait_until(lambda: partner.ask("GET", f"/v1/transactions/{newest}").status == 200)
