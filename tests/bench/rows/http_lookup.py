"""Paid single lookups over HTTP, against a bare view on the same server."""

from collections.abc import Iterator
from http.client import HTTPConnection
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.parse import quote

from app.bootstrap.container import Container
from app.processes.migrate import migrate
from app.settings import Settings
from tests.bench.installation import environment
from tests.bench.load import Load, outcome_of
from tests.bench.measure import medians
from tests.bench.numbers import real_numbers
from tests.bench.partners import Partner, new_partner, tokens
from tests.bench.row import Aim, Row
from tests.bench.server import HOST, bare_server, free_port, service

CONNECTIONS = 16
DURATION_S = 2.0
REPEATS = 1


def measure() -> Iterator[Row]:
    paths = [f"/number-lookup?phone_number={quote(number)}" for number in real_numbers()]
    with TemporaryDirectory(prefix="bench-") as name:
        directory = Path(name)
        settings = environment(directory)
        # Every repetition has a new organization, so that few answers come from the cache.
        partners = _partners(settings, REPEATS + 1)
        port, bare_port = free_port(), free_port()
        with service(settings, port, directory / "serve.log"):
            bearers = tokens(HOST, port, partners)
            rounds = ([bearer] * CONNECTIONS for bearer in bearers)
            with bare_server(_answer(port, bearers[0], paths[0]), bare_port, directory):
                ours, limit = medians(
                    lambda: _rate(port, next(rounds), paths),
                    lambda: _rate(bare_port, [bearers[0]] * CONNECTIONS, paths),
                    repeats=REPEATS,
                )
    yield Row(
        "single lookup over HTTP, charged, one organization",
        ours,
        limit,
        "requests/s",
        Aim(ratio_min=0.4),
    )


def _partners(settings: dict[str, str], count: int) -> list[Partner]:
    container = Container(Settings.from_env(settings))
    migrate(container)
    container.keys.ensure()
    try:
        return [new_partner(container) for _ in range(count)]
    finally:
        container.close()


def _rate(port: int, bearers: list[str], paths: list[str]) -> float:
    return outcome_of(Load(HOST, port, DURATION_S, bearers, paths)).per_s


def _answer(port: int, bearer: str, path: str) -> bytes:
    connection = HTTPConnection(HOST, port, timeout=30)
    connection.request("POST", path, headers={"Authorization": f"Bearer {bearer}"})
    body = connection.getresponse().read()
    connection.close()
    return body
