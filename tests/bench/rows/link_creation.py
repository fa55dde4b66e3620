"""Creations of links over HTTP: what they add to the calls of the network that each one makes."""

import json
import os
from collections.abc import Callable, Collection, Iterator
from functools import partial
from http.client import HTTPConnection
from pathlib import Path
from tempfile import TemporaryDirectory
from uuid import uuid4

from app.bootstrap.container import Container
from app.processes.migrate import migrate
from app.settings import Settings
from domain.links.network import EsimNetwork
from domain.provider_errors import Rejected
from tests.bench.crowd import crowd
from tests.bench.engine import server_pids
from tests.bench.fleet import PLAN, PROFILE
from tests.bench.installation import BASE_PLAN, environment, installation
from tests.bench.measure import all_times, each_ms, medians, percentile
from tests.bench.partners import Partner, new_partner, tokens
from tests.bench.processor import us_each
from tests.bench.row import Aim, Row
from tests.bench.server import HOST, free_port, service
from tests.plan_files import import_plans, plan, stored

CREATIONS = 40  # Of one round, by all clients together.
REPEATS = 5
CROWD = 8
CROWD_REPEATS = 3
CALL_S = 5.0
US_IN_MS = 1_000

Action = Callable[[], object]
Start = Callable[[], Action]  # Called by each client for what it then does over and over.


def measure() -> Iterator[Row]:
    with TemporaryDirectory(prefix="bench-") as name, installation() as alone:
        directory, port = Path(name), free_port()
        settings = environment(directory)
        partner, body = _prepare(settings)
        with service(settings, port, directory / "serve.log") as running:
            (bearer,) = tokens(HOST, port, [partner])
            create = partial(_creator, port, bearer, body)
            # The network of another installation, whose tables nobody else uses meanwhile.
            sell = partial(_seller, alone.network)
            yield from _times(create, sell)
            yield _cost(running.pids.values(), create, sell)


def _cost(pids: Collection[int], create: Start, sell: Start) -> Row:
    """Compare what a creation costs all processes with what the network's calls alone do."""
    network = [os.getpid(), *server_pids().values()]
    ours, limit = medians(
        lambda: us_each(CREATIONS + CROWD, pids, lambda: _round_ms(CROWD, create)) / US_IN_MS,
        lambda: us_each(CREATIONS + CROWD, network, lambda: _round_ms(CROWD, sell)) / US_IN_MS,
        repeats=CROWD_REPEATS,
    )
    return Row("link creation, processor time", ours, limit, "ms", Aim(ours_max=20))


def _times(create: Start, sell: Start) -> Iterator[Row]:
    ours, limit = all_times(
        lambda: _round_ms(1, create), lambda: _round_ms(1, sell), repeats=REPEATS
    )
    yield _row("link creation, added at p50", 50, ours, limit, Aim(ours_max=20))
    yield _row("link creation, added at p99", 99, ours, limit, Aim())
    ours, limit = all_times(
        lambda: _round_ms(CROWD, create), lambda: _round_ms(CROWD, sell), repeats=CROWD_REPEATS
    )
    name = f"link creation, added at p50, {CROWD} at once"
    yield _row(name, 50, ours, limit, Aim(ours_max=60))


def _row(name: str, percent: int, ours: list[float], limit: list[float], aim: Aim) -> Row:
    """Return a row whose limit is the network's own time, and ours what comes on top of it."""
    alone = percentile(limit, percent)
    return Row(name, percentile(ours, percent) - alone, alone, "ms", aim)


def _prepare(settings: dict[str, str]) -> tuple[Partner, bytes]:
    """Make the installation; return who buys there, and the request that buys."""
    container = Container(Settings.from_env(settings))
    migrate(container)
    container.keys.ensure()
    try:
        import_plans(container, plan())
        body = {"plan_id": str(stored(container).id), "name": "Device"}
        return new_partner(container), json.dumps(body).encode()
    finally:
        container.close()


def _round_ms(clients: int, start: Start) -> list[float]:
    """Let so many clients share a round; return what each creation has taken."""
    times: list[float] = []

    def act() -> None:
        action = start()
        action()  # The first one of a thread opens its connections.
        times.extend(each_ms(CREATIONS // clients, action))

    crowd(clients, act)
    return times


def _creator(port: int, bearer: str, body: bytes) -> Action:
    connection = HTTPConnection(HOST, port, timeout=30)
    headers = {"Authorization": f"Bearer {bearer}", "Content-Type": "application/json"}

    def create() -> None:
        connection.request("POST", "/v1/links", body, headers)
        reply = connection.getresponse()
        answer = reply.read()
        assert reply.status == 201, answer

    return create


def _seller(network: EsimNetwork) -> Action:
    """Return what asks the network for all that a creation needs, and for nothing more."""
    wanted = PLAN.at_provider

    def sell() -> None:
        reference = uuid4()
        found = network.available_esims(wanted, PROFILE.id, "", page=0, timeout_s=CALL_S)
        start = reference.int % len(found)
        for each in [*found[start:], *found[:start]]:
            network.lpa(each.iccid, timeout_s=CALL_S)
            try:
                network.create_endpoint(
                    each.iccid, wanted, BASE_PLAN, str(reference), timeout_s=CALL_S
                )
            except Rejected:  # Another one of the crowd was first.
                continue
            return
        message = "the network has no free eSIM"
        raise RuntimeError(message)

    return sell
