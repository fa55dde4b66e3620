"""`honcho start` runs the whole system on few connections."""

import os
import signal
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from copy import copy
from http import HTTPStatus
from threading import Event, Thread

import psycopg
import pytest

from tests.app.adapters.postgres.test_roles import Roles
from tests.house.load import at_work, goes_on
from tests.house.partner import Partner, Promised
from tests.house.running import COMES_UP_S, Running
from tests.house.system import PROCESSES, System
from tests.installation import wait_until
from tests.scenarios.conftest import partner_of

BACKENDS_MAX = 60  # docs/deployment.md says so of the Procfile at its default settings.
SOAK = bool(os.environ.get("SOAK"))
LOOKUPS_AT_ONCE = 64
BUYERS = 8 if SOAK else 2
ROUNDS = 4 if SOAK else 2
ROUND = (3 if SOAK else 1) * LOOKUPS_AT_ONCE
OURS = (
    "SELECT pid, application_name FROM pg_stat_activity"
    " WHERE datname = current_database() AND application_name LIKE 'carrier-links%'"
    " AND application_name NOT LIKE 'carrier-links command%'"
)
OPENED = "SELECT sessions FROM pg_stat_database WHERE datname = current_database()"

# `test_take_over` runs all processes under load, too; tests/tidy and tests/ops read the Procfile.
pytestmark = [pytest.mark.soak, pytest.mark.timeout(400)]


@pytest.fixture
def two_roles(system: System) -> Iterator[dict[str, str]]:
    """The settings of docs/deployment.md, *Two roles of the database*."""
    roles = Roles(system.environment["DATABASE_URL"])
    yield {
        "OWNER_DATABASE_URL": roles.url_of(roles.owner),
        "DATABASE_URL": roles.url_of(roles.service),
        "SERVICE_ROLE": roles.service,
    }
    roles.close()


def come_up(system: System, running: Running) -> None:
    """Wait until HTTP is served and every process has said that it works."""
    for name in PROCESSES[1:]:
        running.says(f"{name} is at work", COMES_UP_S)
    anyone = Partner(system.url, "", "")
    wait_until(lambda: anyone.ask("GET", "/readyz").status == 200, COMES_UP_S)


# When one is killed, honcho ends all and all start anew. `test_take_over` kills followers,
# and a `web`, `test_worker_process` a worker, the fault programme all.
def test_the_procfile_runs_everything(system: System, two_roles: dict[str, str]) -> None:
    system.environment |= two_roles
    running = system.honcho()
    come_up(system, running)
    partner = partner_of(system)
    assert partner.authorize().status == HTTPStatus.OK
    check_connections(system, partner)
    with at_work(partner):
        goes_on(partner)
    promised = partner.promised
    assert promised.jobs
    assert promised.links
    assert promised.charges
    partner.check()
    system.check()
    running.signal(signal.SIGTERM)
    assert running.ended() == 128 + signal.SIGTERM  # What honcho returns for SIGTERM.


@contextmanager
def lookups(partner: Partner, at_once: int) -> Iterator[list[int]]:
    """Look up from so many connections without pause; yields the statuses that have come."""
    stop, statuses = Event(), list[int]()

    def work(number: int) -> None:
        while not stop.is_set():
            path = f"/number-lookup?phone_number=%2B1415{number:07d}"
            statuses.append(partner.ask("POST", path).status)

    threads = [Thread(target=work, args=(number,)) for number in range(at_once)]
    for thread in threads:
        thread.start()
    try:
        yield statuses
    finally:
        stop.set()
        for thread in threads:
            thread.join()


def check_connections(system: System, partner: Partner) -> None:
    """Fail if a running Procfile has too many sessions under load, or opens one for a request."""
    counts = list[int]()
    with ExitStack() as stack:
        url = system.environment["DATABASE_URL"]
        server = stack.enter_context(psycopg.connect(url, autocommit=True))
        for _ in range(BUYERS):
            buyer = copy(partner)
            buyer.promised = Promised()
            stack.enter_context(at_work(buyer))
        statuses = stack.enter_context(lookups(partner, LOOKUPS_AT_ONCE))
        wait_until(lambda: len(statuses) > ROUND, COMES_UP_S)
        before, opened = dict(server.execute(OURS).fetchall()), _opened(server)
        for _ in range(ROUNDS):
            enough = len(statuses) + ROUND
            wait_until(lambda enough=enough: len(statuses) > enough, COMES_UP_S)
            counts.append(len(server.execute(OURS).fetchall()))
        after = dict(server.execute(OURS).fetchall())
        opened_meanwhile = _opened(server) - opened
    assert {*statuses} <= {HTTPStatus.OK, HTTPStatus.TOO_MANY_REQUESTS}  # It is one organization.
    assert max(counts) < BACKENDS_MAX, sorted(after.values())
    gone = [name for pid, name in before.items() if pid not in after]
    assert not gone, "connections that were in use are closed and opened anew"
    assert opened_meanwhile <= len(after), "connections are opened for single requests"


def _opened(server: psycopg.Connection) -> int:
    """Return how many sessions there ever were; the server tells it a second late."""
    (count,) = server.execute(OPENED).fetchone() or (0,)
    return int(count)
