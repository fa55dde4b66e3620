"""The whole system sells while its providers, its workers and its web workers fail.

The other network beside the failing one is not touched by that: its links are as quick as ever.
"""

import json
import os
import random
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from copy import copy
from pathlib import Path
from threading import Event, Thread

import pytest

from tests.installation import wait_until
from tests.scenarios.conftest import partner_of
from tests.scenarios.far import PRICE, Far, on_bics, on_esimgo
from tests.scenarios.load import load
from tests.scenarios.partner import Partner, Promised
from tests.scenarios.system import System, failures, find, unfinished
from tests.scenarios.test_procfile import WEB_WORKER, come_up, lose
from tests.scenarios.walk import walk
from tests.servers.databases import Databases
from tests.workers.link_checks import Books

SEED = 7
BUYERS = 4
TROUBLE_S = 45.0  # Real seconds under faults.
BETWEEN_S = 0.25
SETTLES_S = 330.0  # A lost creation is looked for until 200 s after its call.

pytestmark = [pytest.mark.soak, pytest.mark.timeout(900)]


@pytest.fixture(params=[on_bics, on_esimgo])
def far(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Far]:
    with request.param(tmp_path) as far:
        yield far


@pytest.fixture
def system(tmp_path: Path, databases: Databases, broker_url: str, far: Far) -> Iterator[System]:
    url = databases.new()
    # One answers while the other was killed.
    made = System(tmp_path, url, broker_url, WEB_WORKERS="2", **far.environment)
    yield made
    made.close()
    databases.drop(url)


def plans_of(system: System, partner: Partner, far: Far) -> list[str]:
    """Offer plans of the failing network; return their ids."""
    plans = [
        {
            "provider_plan_id": name,
            "name": f"Plan {name}",
            "network": far.network,
            "retail_price": "4.00",
            "cost": PRICE,
            "currency": "USD",
            "data_mb": 1_000,
            "validity_days": 7,
            "sponsor_profiles": far.sponsors,
            "coverage": [{"country_code": "NZ", "operators": []}],
        }
        for name in far.plan_ids
    ]
    file = system.home / "plans.json"
    file.write_text(json.dumps({"plans": plans}))
    done = system.run("plans", "import", str(file))
    assert done.returncode == 0, done.stderr
    path, names = "/v1/plans?per_page=100", {plan["name"] for plan in plans}

    def ids() -> list[str]:
        found = partner.ask("GET", path).data["data"]
        return [each["id"] for each in found if each["name"] in names]

    wait_until(lambda: len(ids()) == len(plans))
    return ids()


@contextmanager
def buyers(partner: Partner, plan_ids: list[str]) -> Iterator[list[Partner]]:
    """Buy links of these plans, and add a plan to each, from several threads; yield who buys."""
    stop, failed = Event(), list[BaseException]()
    buying = [copy(partner) for _ in range(BUYERS)]

    def work(number: int) -> None:
        chance, buyer = random.Random(SEED + number), buying[number]
        buyer.promised = Promised()
        buyer.keeps_key = number % 2 == 0
        try:
            while not stop.is_set():
                before = {*buyer.promised.links}
                buyer.buy(chance.choice(plan_ids), stop)
                for link_id in {*buyer.promised.links} - before:
                    buyer.top_up(link_id, stop)
        except BaseException as error:  # noqa: BLE001  # It is raised below, in the test.
            failed.append(error)

    threads = [Thread(target=work, args=(number,)) for number in range(BUYERS)]
    for thread in threads:
        thread.start()
    try:
        yield buying
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    if failed:
        raise failed[0]


def test_what_was_sold_is_delivered_or_given_back_whatever_fails(system: System, far: Far) -> None:
    running = system.honcho()
    come_up(system, running)
    partner = partner_of(system)
    walk(partner)
    plan_ids = plans_of(system, partner, far)
    chance, ends_s = random.Random(SEED), time.monotonic() + TROUBLE_S
    pulse, kills = Event(), iter(["web worker", "worker"])
    with load(partner), buyers(partner, plan_ids) as buying:
        while (left_s := ends_s - time.monotonic()) > 0:
            far.trouble(chance)
            pulse.wait(BETWEEN_S)
            if left_s < TROUBLE_S / 2 and (victim := next(kills, None)):
                running = lose(system, running, victim)
        far.heal()
    assert far.sold > 20
    assert unfinished(system, SETTLES_S) == []
    far.check(Books(system.container.log))
    assert failures(system) == ""
    for each in (partner, *buying):
        each.check()
    for pid in find(running.pid, WEB_WORKER):
        os.kill(pid, signal.SIGTERM)
    said = "".join(file.read_text() for file in system.home.glob("*.log"))
    assert not [secret for secret in (*far.secrets, "LPA:1$") if secret in said]
    assert not [iccid for iccid in far.iccids if iccid in said]
