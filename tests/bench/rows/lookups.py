"""Charged lookups over HTTP beside a plain service on the same provider, tokens and checks.

What a lookup costs is the processor time of every process: web, followers, broker and database. The
plain service has the pool of connections that costs it least.
"""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.parse import quote

import psycopg

from app.bootstrap.container import Container
from app.processes.migrate import migrate
from app.settings import Settings
from domain.accounts.organization import SCOPES
from tests.bench.engine import on_postgres, peer_database_url
from tests.bench.installation import environment
from tests.bench.load import Load, Outcome
from tests.bench.numbers import real_numbers
from tests.bench.partners import Partner, new_partner
from tests.bench.peers import plain_tables
from tests.bench.peers.plain_charges import POOLS
from tests.bench.peers.plain_service import config_of
from tests.bench.row import Aim, Row
from tests.bench.server import HOST, free_port, plain_server, service
from tests.bench.side import Side
from tests.servers.guard import wait_for

ORGANIZATIONS = 60
CONNECTIONS = 16
DURATION_S = 2.0
TRIAL_S = 1.0
PACED_S = 1.5
SETTLE_S = 60.0
ISSUER = "https://bench.example"
PACES = {"half": 0.5, "four fifths": 0.8}

OURS, PLAIN, ONE_STATEMENT = "ours", "a plain service", "one in one statement"


@dataclass(frozen=True)
class Kind:
    """A kind of load: who asks, and whether each request has a key."""

    name: str
    organizations: int = 1
    keyed: bool = False


ONE = Kind("lookup, one organization")
KEYED = Kind("lookup with a key", keyed=True)
MANY = Kind(f"lookup, {ORGANIZATIONS} organizations", ORGANIZATIONS)
KINDS = (ONE, KEYED, MANY)

# By the kind of load and whom we stand beside.
AIMS = {
    (ONE, PLAIN): Aim(ratio_max=1.0),
    (ONE, ONE_STATEMENT): Aim(ratio_max=1.3),
    (KEYED, PLAIN): Aim(ratio_max=1.0),
    (KEYED, ONE_STATEMENT): Aim(),
    (MANY, PLAIN): Aim(ratio_max=1.0),
    (MANY, ONE_STATEMENT): Aim(),
}

Best = Mapping[tuple[Kind, str], int]  # How many connections suit a plain service.
Beside = Mapping[tuple[Kind, str], Side]
Measured = Mapping[tuple[Kind, str], tuple[Outcome, float]]


class Installation:
    """A new installation, its partners, and the plain service's copies of them."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.settings = environment(directory, TOKEN_ISSUER=ISSUER)  # Of tokens before a server.
        self.container = Container(Settings.from_env(self.settings))
        migrate(self.container)
        self.container.keys.ensure()
        self._partners = [new_partner(self.container) for _ in range(ORGANIZATIONS)]
        self._paths = [f"/number-lookup?phone_number={quote(each)}" for each in real_numbers()]
        self._tokens = [self._token(partner) for partner in self._partners]

    def load(self, kind: Kind, port: int, duration_s: float, per_s: float | None = None) -> Load:
        """Return the load of a kind for a server."""
        each = CONNECTIONS if kind.organizations == 1 else 1
        tokens = self._tokens[: kind.organizations] * each
        return Load(HOST, port, duration_s, tokens, self._paths, kind.keyed, per_s)

    @contextmanager
    def ours(self) -> Iterator[Side]:
        """Run our service."""
        port = free_port()
        with service(self.settings, port, self.directory / "service.log") as running:
            yield self._warmed(Side(OURS, port, running.pids, self._settle))

    @contextmanager
    def plain(self, name: str, url: str, connections: int) -> Iterator[Side]:
        """Run a plain service on its database."""
        config = config_of(
            self.container, url, connections=connections, one_statement=name == ONE_STATEMENT
        )
        port = free_port()
        with plain_server(config, port, self.directory / "plain.log") as running:
            yield self._warmed(Side(f"{name}, {connections} connections", port, running.pids))

    def plain_database(self) -> str:
        """Return a new database of the plain service, with these partners in it."""
        url = peer_database_url()
        plain_tables.make(url, ((each.organization, each.client_id) for each in self._partners))
        return url

    def _warmed(self, side: Side) -> Side:
        """Let all connections of a server be opened, and its first requests be over."""
        side.bear(self.load(MANY, side.port, TRIAL_S))
        return side

    def _token(self, partner: Partner) -> str:
        return self.container.issuer.issue(partner.client_id, partner.organization, SCOPES)

    def _settle(self) -> None:
        """Wait until the followers have read all: that is owed for each answer, too."""
        lags = self.container.observed.follower_lags
        assert wait_for(lambda: not any(lag.events for lag, _ in lags()), SETTLE_S)


@contextmanager
def prepared() -> Iterator[tuple[Best]]:
    """Find out how many connections suit the plain service."""
    best = {}
    if on_postgres():
        with installation() as made:
            for name in (PLAIN, ONE_STATEMENT):
                best |= _best(made, name)
    yield (best,)


def measure(best: Best) -> Iterator[Row]:
    with installation() as made, ExitStack() as stack:
        ours = stack.enter_context(made.ours())
        urls = {name: made.plain_database() for _, name in best}
        plain = {
            (name, size): stack.enter_context(made.plain(name, urls[name], size))
            for name, size in {(name, size) for (_, name), size in best.items()}
        }
        beside = {(kind, name): plain[name, size] for (kind, name), size in best.items()}
        fresh = _costs(made, ours, beside)
        _analyse(made, urls.values())
        analysed = _costs(made, ours, beside)
        yield from _cost_rows("fresh tables", fresh)
        yield from _cost_rows("analysed tables", analysed)
        for kind in KINDS:
            yield from _paced(made, kind, ours, beside, analysed)


@contextmanager
def installation() -> Iterator[Installation]:
    """Make an installation that nothing has happened to."""
    with TemporaryDirectory(prefix="bench-") as directory:
        made = Installation(Path(directory))
        try:
            yield made
        finally:
            made.container.close()


def _best(made: Installation, name: str) -> Iterator[tuple[tuple[Kind, str], int]]:
    """Try all sizes of the pool; yield for each kind of load the one that costs least."""
    url, tried = made.plain_database(), {}
    for size in POOLS:
        with made.plain(name, url, size) as side:
            for kind in KINDS:
                _, tried[kind, size] = side.bear(made.load(kind, side.port, TRIAL_S))
    for kind in KINDS:
        yield (kind, name), min(POOLS, key=lambda size, kind=kind: tried[kind, size])


def _costs(made: Installation, ours: Side, beside: Beside) -> Measured:
    """Let each side bear the highest load of each kind, one after the other."""
    measured = {}
    for kind in KINDS:
        measured[kind, OURS] = ours.bear(made.load(kind, ours.port, DURATION_S))
        for name in (PLAIN, ONE_STATEMENT):
            if (kind, name) in beside:
                side = beside[kind, name]
                measured[kind, name] = side.bear(made.load(kind, side.port, DURATION_S))
    return measured


def _analyse(made: Installation, urls: Iterable[str]) -> None:
    """Tell both databases how many rows there are now."""
    with made.container.views.writing() as connection:
        connection.exec_driver_sql("ANALYZE")
    for url in urls:
        with psycopg.connect(url, autocommit=True) as database:
            database.execute("ANALYZE")


def _cost_rows(when: str, measured: Measured) -> Iterator[Row]:
    for (kind, name), aim in AIMS.items():
        if (kind, name) in measured:
            ours, theirs = measured[kind, OURS][1], measured[kind, name][1]
            yield Row(f"{kind.name}, beside {name}, {when}", ours, theirs, "µs", aim)
    ours, theirs = measured[KEYED, OURS][1], measured[ONE, OURS][1]
    yield Row(f"{KEYED.name}, beside one without, {when}", ours, theirs, "µs", Aim(ratio_max=1.5))


def _paced(
    made: Installation, kind: Kind, ours: Side, beside: Beside, measured: Measured
) -> Iterator[Row]:
    """Let us and a plain service bear shares of what the slower one of the two can."""
    if (kind, PLAIN) not in beside:
        return
    highest = [measured[kind, name][0].per_s for name in (OURS, PLAIN)]
    yield Row(f"{kind.name}, highest rate, beside {PLAIN}", *highest, "requests/s", Aim())
    for told, share in PACES.items():
        outcomes = [
            side.bear(made.load(kind, side.port, PACED_S, min(highest) * share))[0]
            for side in (ours, beside[kind, PLAIN])
        ]
        name = f"{kind.name}, at {told} of the lower of these rates"
        yield Row(f"{name}, p50", *(each.p50_ms for each in outcomes), "ms", Aim())
        yield Row(f"{name}, p99", *(each.p99_ms for each in outcomes), "ms", Aim())
