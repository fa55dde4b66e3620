"""Creations of links from a stock over HTTP, eight at once: time, processor time and statements."""

import re
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from time import perf_counter

from tests.bench.crowd import crowd
from tests.bench.engine import on_postgres
from tests.bench.installation import Connection, environment, new_partner, opened
from tests.bench.processor import us_each
from tests.bench.row import Aim, Row
from tests.bench.server import service
from tests.budgets.test_budgets import BUDGETS
from tests.plan_files import import_plans, plan, stored
from tests.servers.running import free_port

CROWD = 8
CREATIONS_EACH = 6
ROUNDS = 3
US_IN_MS = MS_IN_S = 1_000


def measure() -> Iterator[Row]:
    with TemporaryDirectory(prefix="bench-") as name:
        directory, port = Path(name), free_port()
        settings = environment(directory)
        bearer, body = _prepare(settings)
        times_s = list[float]()
        with service(settings, port, directory / "serve.log") as running:

            def create() -> None:
                crowd(CROWD, lambda: _create(port, bearer, body, times_s))

            create()
            times_s.clear()
            rounds = [
                us_each(CROWD * CREATIONS_EACH, running.pids.values(), create)
                for _ in range(ROUNDS)
            ]
    name = f"link creation, p50 of {CROWD} at once"
    yield Row(name, median(times_s) * MS_IN_S, None, "ms", Aim())
    ms = median(rounds) / US_IN_MS
    yield Row("link creation, processor time", ms, None, "ms", Aim(ours_max=20))
    name = "link creation, statements without the network's own"
    yield Row(name, _statements(), None, "statements", Aim(ours_max=40))


def _statements() -> int:
    """Add up what the tests of the budgets hold exactly."""
    budget = BUDGETS["link"].postgresql if on_postgres() else BUDGETS["link"].sqlite
    roles = re.findall(r"(\w+) (\d+)/\d+", budget)
    return sum(int(statements) for role, statements in roles if role != "network")


def _prepare(settings: dict[str, str]) -> tuple[str, object]:
    """Make the installation; return the token of who buys there, and the request that buys."""
    with closing(opened(settings)) as container:
        import_plans(container, plan())
        body = {"plan_id": str(stored(container).id), "name": "Device"}
        return new_partner(container).token, body


def _create(port: int, bearer: str, body: object, times_s: list[float]) -> None:
    with closing(Connection(port, bearer)) as connection:
        for _ in range(CREATIONS_EACH):
            began_s = perf_counter()
            connection.ask("POST", "/v1/links", body)
            times_s.append(perf_counter() - began_s)
