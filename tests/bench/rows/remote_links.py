"""Creations and top-ups of links on networks that take 150 ms for every call.

The networks are the scripted ones, in the process of the bench. What a request takes is added to
the network's own time, which is the calls in the network's record times 150 ms. Beside all calls
stand those that change something. Beside the processor time stands what the service takes in as
long a time when nobody asks it for anything.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from http.client import HTTPConnection
from pathlib import Path
from statistics import median, median_low
from tempfile import TemporaryDirectory
from threading import Event
from time import perf_counter

import msgspec

from app.bootstrap.container import Container
from app.processes.migrate import migrate
from app.settings import Settings
from domain.cause import utc_now
from tests.app.adapters.networks.bics.bics_lab import environment_of
from tests.bench.installation import environment
from tests.bench.partners import Partner, new_partner, tokens
from tests.bench.processor import TICKS_PER_S, spent_s
from tests.bench.row import Aim, Row
from tests.bench.server import HOST, Running, free_port, service
from tests.plan_files import import_plans, plan, profile, stored
from tests.support.providers import bics, esimgo
from tests.support.providers.bics import BicsServer
from tests.support.providers.esimgo import EsimGoServer
from tests.support.providers.server import ScriptedServer

DELAY_S = 0.15  # Longer than the pace of eSIM Go, eight calls a second, makes a caller wait.
CREATIONS = 10
MS = 1_000


@dataclass(frozen=True)
class Shop:
    """A service that sells one plan of a network, and the network."""

    server: ScriptedServer
    running: Running
    port: int
    bearer: str
    plan_id: str


@dataclass(frozen=True)
class Spent:
    """What the median request took, how many calls it made, and the mean processor time."""

    wall_ms: float
    calls: float
    changes: float
    processor_ms: float


def measure() -> Iterator[Row]:
    for name, opened in (("bics", on_bics), ("esimgo", on_esimgo)):
        with opened() as shop:
            yield from rows_of(name, shop, CREATIONS, DELAY_S)


def rows_of(name: str, shop: Shop, count: int, delay_s: float) -> Iterator[Row]:
    """Create links and top each up once, one after the other."""
    connection = HTTPConnection(HOST, shop.port, timeout=30)
    links: list[str] = []
    create = partial(_create, connection, shop, links)
    top_up = partial(_top_up, connection, shop, links)
    create()  # Logs in, and opens connections.
    shop.server.delay_s = delay_s
    created = _spent(shop, create, count)
    topped_up = _spent(shop, top_up, count)
    connection.close()
    for what, spent in (("link creation", created), ("top-up", topped_up)):
        network_ms = spent.calls * delay_s * MS
        named, added_ms = f"{what} on {name}", spent.wall_ms - network_ms
        yield Row(f"{named}, added at p50", added_ms, network_ms, "ms", Aim(ratio_max=0.1))
        yield Row(f"{named}, calls", spent.calls, spent.changes, "calls", Aim())
        rest_ms = _at_rest_ms(shop.running, count * spent.wall_ms / MS) / count
        yield Row(f"{named}, processor time", spent.processor_ms, rest_ms, "ms", Aim())


def _spent(shop: Shop, act: Callable[[], object], count: int) -> Spent:
    walls_ms, calls, changes = [], [], []
    pids = shop.running.pids.values()
    before_s = spent_s(pids)
    for _ in range(count):
        asked, began_s = len(shop.server.requests), perf_counter()
        act()
        walls_ms.append((perf_counter() - began_s) * MS)
        made = shop.server.requests[asked:]
        calls.append(len(made))
        changes.append(sum(each.method != "GET" for each in made))
    processor_ms = (spent_s(pids) - before_s) / count * MS
    # The clock may have asked the network for something meanwhile.
    return Spent(median(walls_ms), median_low(calls), median_low(changes), processor_ms)


def _at_rest_ms(running: Running, seconds: float) -> float:
    """Return what the service takes in this time of itself, at least what can be measured."""
    before_s = spent_s(running.pids.values())
    Event().wait(seconds)
    return max(spent_s(running.pids.values()) - before_s, 1 / TICKS_PER_S) * MS


@contextmanager
def on_bics() -> Iterator[Shop]:
    """Sell a plan of the scripted BICS."""
    called = "eu-1"
    with BicsServer() as server:
        terms = {"sponsor_profiles": [profile(bics.SPONSORS[0])], "network": "bics"}
        with _shop(server, environment_of(server), called, terms) as shop:
            yield shop


@contextmanager
def on_esimgo() -> Iterator[Shop]:
    """Sell a bundle of the scripted eSIM Go."""
    called = "esim_1gb"
    with EsimGoServer(utc_now) as server:
        server.offer(called)
        settings = {
            "NETWORK_PROVIDER": "esimgo",
            "SANDBOX": "false",
            "ESIMGO_URL": server.url,
            "ESIMGO_API_KEY": esimgo.KEY,
        }
        with _shop(server, settings, called, {"network": "esimgo"}) as shop:
            yield shop


@contextmanager
def _shop(
    server: ScriptedServer, settings: Mapping[str, str], called: str, terms: Mapping[str, object]
) -> Iterator[Shop]:
    with ExitStack() as stack:
        directory = Path(stack.enter_context(TemporaryDirectory(prefix="bench-")))
        named, port = environment(directory, **settings), free_port()
        partner, plan_id = _prepare(named, called, terms)
        running = stack.enter_context(service(named, port, directory / "serve.log"))
        (bearer,) = tokens(HOST, port, [partner])
        yield Shop(server, running, port, bearer, plan_id)


def _prepare(
    settings: Mapping[str, str], called: str, terms: Mapping[str, object]
) -> tuple[Partner, str]:
    """Make the installation; return who buys there, and what."""
    container = Container(Settings.from_env(settings))
    migrate(container)
    container.keys.ensure()
    try:
        import_plans(container, plan(called, **terms))
        network = str(terms["network"])
        return new_partner(container), str(stored(container, called, network=network).id)
    finally:
        container.close()


def _create(connection: HTTPConnection, shop: Shop, links: list[str]) -> None:
    told = _ask(connection, shop, "POST", "/v1/links", {"plan_id": shop.plan_id})
    links.append(told["data"]["id"])


def _top_up(connection: HTTPConnection, shop: Shop, links: list[str]) -> None:
    path = f"/v1/links/{links.pop()}/plans"
    _ask(connection, shop, "PUT", path, {"add": [shop.plan_id]})


def _ask(
    connection: HTTPConnection, shop: Shop, method: str, path: str, body: dict[str, object]
) -> dict[str, dict[str, str]]:
    headers = {"Authorization": f"Bearer {shop.bearer}", "Content-Type": "application/json"}
    connection.request(method, path, json.dumps(body), headers)
    reply = connection.getresponse()
    answer = reply.read()
    assert reply.status in {200, 201}, answer
    told: dict[str, dict[str, str]] = msgspec.json.decode(answer)
    return told
