"""Creations of links from a stock over HTTP, eight at once, in processor time."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

from tests.bench.crowd import crowd
from tests.bench.installation import Connection, environment, new_partner, opened
from tests.bench.processor import us_each
from tests.bench.row import Aim, Row
from tests.bench.server import service
from tests.plan_files import import_plans, plan, stored
from tests.servers.running import free_port

CROWD = 8
CREATIONS_EACH = 6
ROUNDS = 3
US_IN_MS = 1_000


def measure() -> Iterator[Row]:
    with TemporaryDirectory(prefix="bench-") as name:
        directory, port = Path(name), free_port()
        settings = environment(directory)
        bearer, body = _prepare(settings)
        with service(settings, port, directory / "serve.log") as pids:

            def create() -> None:
                crowd(CROWD, lambda: _create(port, bearer, body))

            create()
            rounds = [us_each(CROWD * CREATIONS_EACH, pids.values(), create) for _ in range(ROUNDS)]
    ms = median(rounds) / US_IN_MS
    yield Row("link creation, processor time", ms, None, "ms", Aim(ours_max=20))


def _prepare(settings: dict[str, str]) -> tuple[str, object]:
    """Make the installation; return the token of who buys there, and the request that buys."""
    with closing(opened(settings)) as container:
        import_plans(container, plan())
        body = {"plan_id": str(stored(container).id), "name": "Device"}
        return new_partner(container).token, body


def _create(port: int, bearer: str, body: object) -> None:
    with closing(Connection(port, bearer)) as connection:
        for _ in range(CREATIONS_EACH):
            connection.ask("POST", "/v1/links", body)
