"""Charged lookups over HTTP beside a plain service on the same provider, tokens and checks.

What a lookup costs is the processor time of every process: web, followers, broker and database. The
plain service runs in one process and in two, each with the pool of connections that costs it least.
"""

from base64 import urlsafe_b64encode
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from urllib.parse import quote

import msgspec
import psycopg

from tests.bench.engine import on_postgres, peer_database_url
from tests.bench.installation import environment, new_partner, opened
from tests.bench.load import LOAD_S_MAX, Load
from tests.bench.numbers import real_numbers
from tests.bench.peers import plain_tables
from tests.bench.peers.plain_charges import POOLS
from tests.bench.peers.plain_service import config_of
from tests.bench.row import Aim, Row
from tests.bench.server import HOST, plain_server, service
from tests.bench.side import Side
from tests.servers.guard import wait_for
from tests.servers.running import free_port
from workers.nightly_audit import NIGHT_HOUR

ORGANIZATIONS = 60
CONNECTIONS = 16
DURATION_S = 2.0
TRIAL_S = 1.0
PACED_S = 5.0
PACES_PER_S = (300, 100)
SETTLE_S = 60.0
AUDITED_S = 300.0


@dataclass(frozen=True)
class Kind:
    """A kind of load: who asks, and whether each request has a key; `aim` is at full load."""

    name: str
    aim: Aim
    organizations: int = 1
    keyed: bool = False


@dataclass(frozen=True)
class Peer:
    """A form of the plain service."""

    name: str
    processes: int
    one_statement: bool = False


ONE = Kind("lookup, one organization", Aim(ratio_max=0.8))
KEYED = Kind("lookup with a key", Aim(ratio_max=0.8), keyed=True)
MANY = Kind(f"lookup, {ORGANIZATIONS} organizations", Aim(ratio_max=1.1), ORGANIZATIONS)
KINDS = (ONE, KEYED, MANY)
SINGLE = Peer("the plain service in one process", 1)
DOUBLE = Peer("the plain service in two processes", 2)
ONE_STATEMENT = Peer("one statement in two processes", 2, one_statement=True)
PEERS = (SINGLE, DOUBLE, ONE_STATEMENT)

Pools = Mapping[Peer, int]  # How many connections suit each of its processes.


class Installation:
    """A new installation, its partners, and the plain service's copies of them."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.settings = environment(directory)
        self.container = opened(self.settings)
        self._partners = [new_partner(self.container) for _ in range(ORGANIZATIONS)]
        self._paths = [f"/number-lookup?phone_number={quote(each)}" for each in real_numbers()]
        self.tokens = [partner.token for partner in self._partners]

    def load(self, kind: Kind, port: int, duration_s: float, per_s: float | None = None) -> Load:
        """Return the load of a kind for a server."""
        each = CONNECTIONS if kind.organizations == 1 else 1
        tokens = self.tokens[: kind.organizations] * each
        return Load(HOST, port, duration_s, tokens, self._paths, kind.keyed, per_s)

    def quiet(self, port: int, duration_s: float) -> Load:
        """Return the load of one client of an organization that does nothing else: lookups."""
        return Load(HOST, port, duration_s, self.tokens[:1], self._paths)

    @property
    def token_of_crowd(self) -> str:
        return self.tokens[1]

    def crowd(self, count: int, port: int, path: str, **more: Any) -> Load:
        """Return the load of many connections of another organization, until it is ended."""
        facts = {"method": "GET", "of_strangers": True, **more}
        return Load(HOST, port, LOAD_S_MAX, [self.token_of_crowd] * count, [path], **facts)

    def strangers(self, count: int, port: int, path: str, *, forged: bool = False) -> Load:
        """Return the same of strangers: without a token, or each with another wrong one."""
        head, _, signature = self.token_of_crowd.split(".")
        claims = ({"sub": "cl_x", "client_id": "cl_x", "jti": str(each)} for each in range(count))
        payloads = [urlsafe_b64encode(msgspec.json.encode(each)).decode() for each in claims]
        tokens = [f"{head}.{each.rstrip('=')}.{signature}" for each in payloads]
        tokens = tokens if forged else [""] * count
        return Load(HOST, port, LOAD_S_MAX, tokens, [path], method="GET", of_strangers=True)

    def readers(self, count: int, port: int, duration_s: float) -> Load:
        """Return the load of so many clients that read their wallets, in threads of Flask."""
        tokens = [self.tokens[number % len(self.tokens)] for number in range(count)]
        return Load(HOST, port, duration_s, tokens, ["/v1/wallet"], method="GET")

    @contextmanager
    def ours(self) -> Iterator[Side]:
        """Run our service."""
        port = free_port()
        with service(self.settings, port, self.directory / "service.log") as pids:
            yield self._warmed(Side("ours", port, pids, self._settle))

    @contextmanager
    def plain(self, peer: Peer, url: str, connections: int) -> Iterator[Side]:
        """Run a plain service on its database."""
        config = config_of(
            self.container, url, connections=connections, one_statement=peer.one_statement
        )
        port, log = free_port(), self.directory / "plain.log"
        with plain_server(config, port, log, peer.processes) as pids:
            yield self._warmed(Side(f"{peer.name}, {connections} connections", port, pids))

    def plain_database(self) -> str:
        """Return a new database of the plain service, with these partners in it."""
        url = peer_database_url()
        plain_tables.make(url, ((each.organization, each.client_id) for each in self._partners))
        return url

    def _warmed(self, side: Side) -> Side:
        """Let all connections of a server be opened, and its first requests be over."""
        side.bear(self.load(MANY, side.port, TRIAL_S))
        return side

    def _settle(self) -> None:
        """Wait until the followers have read all: that is owed for each answer, too."""
        lags = self.container.observed.follower_lags
        assert wait_for(lambda: not any(lag.behind for lag, _ in lags()), SETTLE_S)

    def wait_for_audit(self) -> None:
        """Wait for the audit of this night, which begins a minute after a start: no lookup's."""
        if self.container.clock().hour >= NIGHT_HOUR:
            assert wait_for(lambda: self.container.notes.newest("audit") is not None, AUDITED_S)


@contextmanager
def prepared() -> Iterator[tuple[Pools]]:
    """Find out how many connections suit each form of the plain service."""
    pools = {}
    if on_postgres():
        with installation() as made:
            pools = {peer: _best(made, peer) for peer in PEERS}
    yield (pools,)


def measure(pools: Pools) -> Iterator[Row]:
    with installation() as made, ExitStack() as stack:
        ours = stack.enter_context(made.ours())
        if not pools:
            yield from _alone(made, ours)
            return
        urls = {peer: made.plain_database() for peer in pools}
        plain = {
            peer: stack.enter_context(made.plain(peer, urls[peer], size))
            for peer, size in pools.items()
        }
        for when in ("fresh tables", "analysed tables"):
            for kind in KINDS:
                yield from _at_full_load(made, kind, ours, plain, when)
            for url in (made.settings["DATABASE_URL"], *urls.values()):
                with psycopg.connect(url, autocommit=True) as database:
                    database.execute("ANALYZE")
        made.wait_for_audit()
        for per_s in PACES_PER_S:
            yield from _at_a_pace(made, per_s, ours, plain)


@contextmanager
def installation() -> Iterator[Installation]:
    """Make an installation that nothing has happened to."""
    with TemporaryDirectory(prefix="bench-") as directory:
        made = Installation(Path(directory))
        try:
            yield made
        finally:
            made.container.close()


def _best(made: Installation, peer: Peer) -> int:
    """Try pools of several sizes; return the one with which all kinds of load cost least."""
    url, tried = made.plain_database(), {}
    for size in POOLS:
        with made.plain(peer, url, size) as side:
            costs = [side.bear(made.load(kind, side.port, TRIAL_S))[1] for kind in KINDS]
            tried[size] = sum(costs)
    return min(tried, key=lambda size: tried[size])


def _alone(made: Installation, ours: Side) -> Iterator[Row]:
    """Bear all loads; the plain service is on PostgreSQL alone."""
    loads = {kind.name: made.load(kind, ours.port, DURATION_S) for kind in KINDS}
    for per_s in PACES_PER_S:
        loads[f"lookup, {per_s}/s"] = made.load(ONE, ours.port, PACED_S, per_s)
    for name, load in loads.items():
        yield Row(f"{name}, processor time", ours.bear(load)[1], None, "µs", Aim())


def _at_full_load(
    made: Installation, kind: Kind, ours: Side, plain: Mapping[Peer, Side], when: str
) -> Iterator[Row]:
    """Let each side bear as much as it can."""
    reached, cost = ours.bear(made.load(kind, ours.port, DURATION_S))
    for peer, side in plain.items():
        beside, theirs = side.bear(made.load(kind, side.port, DURATION_S))
        name = f"{kind.name}, beside {peer.name}, {when}"
        yield Row(name, cost, theirs, "µs", Aim() if peer.one_statement else kind.aim)
        yield Row(f"{name}, rate", reached.per_s, beside.per_s, "requests/s", Aim())


def _at_a_pace(
    made: Installation, per_s: int, ours: Side, plain: Mapping[Peer, Side]
) -> Iterator[Row]:
    """Let each side bear the same load of one organization."""
    times = {50: Aim(ratio_max=1.3), 99: Aim(ratio_max=1.5)} if per_s == PACES_PER_S[0] else {}
    asked, cost = ours.bear(made.load(ONE, ours.port, PACED_S, per_s))
    for peer in (SINGLE, DOUBLE):
        side = plain[peer]
        beside, theirs = side.bear(made.load(ONE, side.port, PACED_S, per_s))
        name = f"lookup, {per_s}/s, beside {peer.name}"
        yield Row(f"{name}, processor time", cost, theirs, "µs", Aim(ratio_max=1.3))
        yield Row(f"{name}, p50", asked.p50_ms, beside.p50_ms, "ms", times.get(50, Aim()))
        yield Row(f"{name}, p99", asked.p99_ms, beside.p99_ms, "ms", times.get(99, Aim()))
