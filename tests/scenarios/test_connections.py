"""A whole installation under load has few connections, and opens none for a request."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from copy import copy
from http import HTTPStatus
from threading import Event, Thread

import psycopg
import pytest

from tests.installation import wait_until
from tests.scenarios.conftest import partner_of
from tests.scenarios.load import load
from tests.scenarios.partner import Partner, Promised
from tests.scenarios.system import System
from tests.scenarios.test_procfile import COMES_UP_S, come_up

BACKENDS_MAX = 60  # docs/deployment.md says so of the Procfile at its default settings.
LOOKUPS_AT_ONCE = 64
BUYERS = 8
ROUNDS = 4
ROUND = 3 * LOOKUPS_AT_ONCE
OURS = (
    "SELECT pid, application_name FROM pg_stat_activity"
    " WHERE datname = current_database() AND application_name LIKE 'carrier-links%'"
    " AND application_name NOT LIKE 'carrier-links command%'"
)
OPENED = "SELECT sessions FROM pg_stat_database WHERE datname = current_database()"

pytestmark = pytest.mark.timeout(240)  # Six processes come up, on whatever cores there are.


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


def test_the_procfile_under_load_has_few_connections_and_keeps_them(system: System) -> None:
    running = system.honcho()
    come_up(system, running)
    partner = partner_of(system)
    wait_until(lambda: partner.authorize().status == HTTPStatus.OK, COMES_UP_S)
    counts = list[int]()
    with ExitStack() as stack:
        url = system.environment["DATABASE_URL"]
        server = stack.enter_context(psycopg.connect(url, autocommit=True))
        for _ in range(BUYERS):
            buyer = copy(partner)
            buyer.promised = Promised()
            stack.enter_context(load(buyer))
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
