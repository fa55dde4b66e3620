"""Two installations that differ only in size, and the operations that both run."""

import os
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from datetime import timedelta
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple
from uuid import UUID, uuid4

import psycopg
from werkzeug.test import TestResponse

from tests.app.http.buying import BASIC, own_plans
from tests.app.http.service import Tenant
from tests.bench.filling import Lines, dump
from tests.bench.processor import US
from tests.budgets.crew import Crew
from tests.budgets.partner import Partner
from tests.budgets.tally import Tally
from tests.plan_files import import_plans
from tests.seeds import Seed, make_tables

EVENTS_EACH, LINKS_EACH = 1_000, 100  # Of an organization.
CACHED_EACH = 100
OWN_LINKS = 30  # Of the one that is measured.
OWN_LOOKUPS = 60
CACHED = (
    "INSERT INTO lookup_cache SELECT %s, '+1415' || n, 1772366400000000, '\\x7b7d' "
    "FROM generate_series(1000000, 999999 + %s) AS n"
)


class Given(Seed):
    """A database that is there already, and stays."""

    def __init__(self, url: str) -> None:
        self._url = url

    def copy(self, directory: Path) -> str:  # noqa: ARG002  # Of the protocol.
        return self._url

    def drop(self, url: str) -> None:
        """Do nothing: whoever made the database drops it."""


class Customer(Partner):
    """An organization that buys from the catalogue that all share."""

    def __init__(self, crew: Crew, plans: Mapping[str, str]) -> None:
        tenant = crew.service.tenant("100000.00")
        Tenant.__init__(self, crew.service, tenant.id, tenant.client_id)
        self.plans, self.crew = dict(plans), crew
        self._new = count(0)
        crew.settle()

    def live(self, links: int, lookups: int) -> None:
        """Buy links and ask about numbers."""
        for number in range(links):
            name = f"Device {uuid4().int % 10**8:08d}"
            self.a_link, self.a_name = self.link(BASIC, name=name), name
            if number % 10 == 9:
                self.crew.settle()
        self.crew.settle()
        for _ in range(lookups):
            self.look_up(*self.new_numbers(1))
        job: Any = self.create_job(self.new_numbers(100)).json
        self.a_job = job["data"]["job_id"]
        self.crew.settle()


@contextmanager
def playing(url: str) -> Iterator[Crew]:
    """Let the processes of an installation take turns."""
    with TemporaryDirectory(prefix="bench-") as directory:
        crew = Crew(Path(directory), Given(url), Tally())
        yield crew
        crew.close()


def make(url: str) -> Lines:
    """Make an installation with one organization; return what there was before it."""
    make_tables(url)
    with playing(url) as crew:
        crew.service.tenant("1.00")  # With it the ledger, which all share.
        plans = [{**each, "id": str(uuid4())} for each in own_plans("")]
        for each in plans:
            del each["organization_id"]
        import_plans(crew.web, *plans)
        crew.settle()
        before, head = dump(url), crew.web.log.head()
        customer = Customer(crew, {each["name"]: each["id"] for each in plans})
        customer.live(LINKS_EACH, 0)
        customer.live(0, (EVENTS_EACH - (crew.web.log.head() - head)) // 2 - 2)
        with psycopg.connect(url) as server:
            server.execute(CACHED, (customer.id, CACHED_EACH))
        crew.settle(look=True)
    return before


def size() -> int:
    """Return how many events the large one has: BENCH_GROWTH_EVENTS, 10000000 for the whole."""
    return int(os.environ.get("BENCH_GROWTH_EVENTS", "1000000"))


def new_customer(crew: Crew) -> Customer:
    """Return a new customer of an installation, which has some links and lookups."""
    customer = Customer(crew, catalogue(crew.url))
    customer.live(OWN_LINKS, OWN_LOOKUPS)
    return customer


def catalogue(url: str) -> Mapping[str, str]:
    """Return the plans that all share, by what they are called."""
    with psycopg.connect(url) as server:
        rows = server.execute("SELECT name, id FROM plans WHERE organization_id IS NULL")
        return {name: str(plan) for name, plan in rows.fetchall()}


class Operation(NamedTuple):
    """What is measured so often in a round; `before` it, what costs nothing."""

    times: int
    run: Callable[[Customer], object]
    before: Callable[[Customer], object] = id


def _get(path: str) -> Callable[[Customer], object]:
    return lambda it: it.get(path)


def _search(it: Customer, what: str) -> object:
    reply = it.get("/v1/links", query_string={"search": what})
    found: Any = reply.json
    assert found["data"]["data"], reply.text
    return reply


def _number(it: Customer) -> str:
    link = UUID(it.a_link["id"])
    usage = it.crew.web.readings.load([link])[link].usage
    assert usage is not None
    return str(usage.msisdn).removeprefix("+")


def _authorize(it: Customer) -> object:
    it.crew.web.authorizer._state_of_row(it.client_id, None)  # noqa: SLF001  # Nothing remembered.
    return None


def _sweep(it: Customer) -> object:
    return it.crew.web.due_work.beat()


def _purge(it: Customer) -> object:
    web = it.crew.web
    web.counters.forget_lapsed()
    return web.lookup_cache.forget(web.clock() - timedelta(days=30), parts_max=20)


def _events(it: Customer) -> None:
    it.crew.settle()
    for _ in range(100):
        it.look_up(*it.new_numbers(1))


BACKENDS = (
    "SELECT pid FROM pg_stat_activity WHERE datname = current_database()"
    " AND pid <> pg_backend_pid() AND backend_type = 'client backend'"
)
SINCE = "from=2026-03-01T11:00:00Z&to=2026-03-01T13:00:00Z"
OPERATIONS: Mapping[str, Operation] = {
    "lookup": Operation(40, lambda it: it.look_up(*it.new_numbers(1))),
    "lookup with a key": Operation(30, lambda it: it.look_up(*it.new_numbers(1), **it.new_key())),
    "replay": Operation(60, lambda it: it.look_up("+14155550000", **{"Idempotency-Key": "again"})),
    "token": Operation(30, lambda it: it.service.token(it.client_id)),
    "authorization": Operation(150, _authorize),
    "wallet": Operation(60, _get("/v1/wallet")),
    "transactions": Operation(40, _get("/v1/transactions")),
    "transactions of a kind": Operation(40, _get("/v1/transactions?kind=lookup")),
    "transactions of a time": Operation(40, _get(f"/v1/transactions?{SINCE}")),
    "list of links": Operation(30, _get("/v1/links")),
    "links by a name": Operation(30, lambda it: _search(it, it.a_name)),
    "links by a number": Operation(30, lambda it: _search(it, _number(it))),
    "read of a link": Operation(30, lambda it: it.read(it.a_link)),
    "link": Operation(5, lambda it: it.create(BASIC)),
    "job of 100": Operation(5, lambda it: it.create_job(it.new_numbers(100))),
    "read of a job": Operation(60, lambda it: it.get(f"/number-lookup/bulk/{it.a_job}")),
    "plans": Operation(20, _get("/v1/plans")),
    "a step of the projector": Operation(1, lambda it: it.crew.settle(look=True), _events),
    "sweeps": Operation(60, _sweep),
    "purge": Operation(20, _purge),
}


def us_each(it: Customer, operation: Operation) -> float:
    """Return the processor time of one in µs: of this process and of the server's that serve it."""
    operation.before(it)
    before = _spent_s(it.crew.url)
    for _ in range(operation.times):
        reply = operation.run(it)
        assert not isinstance(reply, TestResponse) or reply.status_code < 300, reply.text
        it.crew.settle()
    return (_spent_s(it.crew.url) - before) / operation.times * US


def _spent_s(url: str) -> float:
    return time.process_time() + server_s(backends(url))


def backends(url: str) -> list[int]:
    """Return the server's processes for all connections but this one."""
    with psycopg.connect(url, application_name="bystander") as server:
        return [pid for (pid,) in server.execute(BACKENDS).fetchall()]


def server_s(pids: Collection[int]) -> float:
    """Return how many seconds of the processor these have taken, to the nanosecond."""
    return sum(int(Path(f"/proc/{pid}/schedstat").read_text().split()[0]) for pid in pids) / 1e9
