"""Lookups through a provider that takes 100 ms, 32 at once; and past a first one that is dead."""

import socket
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from http.client import HTTPConnection
from itertools import islice
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from urllib.parse import quote, urlsplit

from app.adapters.remote.api import RemoteApi
from app.bootstrap.container import Container
from app.processes.migrate import migrate
from app.settings import Settings
from domain.cause import utc_now
from tests.bench.installation import environment
from tests.bench.load import Load
from tests.bench.numbers import real_numbers
from tests.bench.partners import Partner, new_partner, tokens
from tests.bench.provider import providers
from tests.bench.row import Aim, Row
from tests.bench.server import HOST, free_port, service
from tests.bench.side import Side

DELAY_S = 0.1
AT_ONCE = 32
ORGANIZATIONS = 4  # One may hold only some of a process's threads.
DURATION_S = 5.0
CALLS = 1_600  # Of the client alone.
NEXT = 20  # Lookups after the first one that met the dead provider.
US_IN_S = 1_000_000

PATHS = [f"/number-lookup?phone_number={quote(each)}" for each in real_numbers()]


def measure() -> Iterator[Row]:
    with providers(DELAY_S) as far:
        yield from _through(far)
        yield from _past_a_dead_one(far)


def _through(far: Mapping[str, str]) -> Iterator[Row]:
    with installation({**far, "LOOKUP_PROVIDER": "twilio"}) as side:
        bearers = side.bearers * (AT_ONCE // ORGANIZATIONS)
        side.server.bear(Load(HOST, side.server.port, 1.0, bearers, PATHS))  # Opens connections.
        outcome, us = side.server.bear(Load(HOST, side.server.port, DURATION_S, bearers, PATHS))
    name = f"lookup through a provider of {DELAY_S * 1000:g} ms, {AT_ONCE} at once"
    limit = AT_ONCE / DELAY_S
    yield Row(name, outcome.per_s, limit, "lookups/s", Aim(ratio_min=0.85))
    yield Row(f"{name}, processor time beside the client alone", us, _client_us(far), "µs", Aim())


def _client_us(far: Mapping[str, str]) -> float:
    """Return what one call of our client costs, as many at once."""
    api = RemoteApi("twilio", far["TWILIO_LOOKUPS_URL"], clock=utc_now)
    with ThreadPoolExecutor(AT_ONCE) as threads:
        path = "/v2/PhoneNumbers/%2B14155552671"
        ask: Callable[[int], object] = lambda _: api.read("GET", path, timeout_s=5)  # noqa: E731  # Its argument is only a number.
        list(threads.map(ask, range(AT_ONCE)))
        began_s = time.process_time()
        list(threads.map(ask, range(CALLS)))
        spent_s = time.process_time() - began_s
    api.close()
    return spent_s / CALLS * US_IN_S


def _past_a_dead_one(far: Mapping[str, str]) -> Iterator[Row]:
    with deaf() as url:
        dead = {"TWILIO_LOOKUPS_URL": url, "TWILIO_API_URL": url}
        with installation({**far, **dead, "LOOKUP_PROVIDER": "twilio,telnyx"}) as side:
            first_ms, *next_ms = islice(_times_ms(side), NEXT + 1)
    with installation({**far, "LOOKUP_PROVIDER": "telnyx"}) as side:
        _, *alone_ms = islice(_times_ms(side), NEXT + 1)
    alone = median(alone_ms)
    name = "lookup past a first provider that is dead"
    yield Row(f"{name}, the first one", first_ms, alone, "ms", Aim(ours_max=2_500))
    yield Row(f"{name}, those after it", median(next_ms), alone, "ms", Aim(ratio_max=1.2))


class Installed:
    """An installation that answers, and the tokens of its partners."""

    def __init__(self, server: Side, bearers: list[str]) -> None:
        self.server = server
        self.bearers = bearers


@contextmanager
def installation(settings: Mapping[str, str]) -> Iterator[Installed]:
    with ExitStack() as stack:
        directory = Path(stack.enter_context(TemporaryDirectory(prefix="bench-")))
        named = environment(directory, LOOKUP_CACHE_TTL_S="0", **settings)
        partners, port = _prepare(named), free_port()
        running = stack.enter_context(service(named, port, directory / "serve.log"))
        yield Installed(Side("service", port, running.pids), tokens(HOST, port, partners))


def _prepare(settings: Mapping[str, str]) -> list[Partner]:
    container = Container(Settings.from_env(settings))
    migrate(container)
    container.keys.ensure()
    try:
        return [new_partner(container) for _ in range(ORGANIZATIONS)]
    finally:
        container.close()


def _times_ms(side: Installed) -> Iterator[float]:
    """Look up one number after the other; yield how long each has taken."""
    connection = HTTPConnection(HOST, side.server.port, timeout=30)
    headers = {"Authorization": f"Bearer {side.bearers[0]}"}
    for path in PATHS:
        began_s = time.perf_counter()
        connection.request("POST", path, headers=headers)
        reply = connection.getresponse()
        answer = reply.read()
        assert reply.status == 200, answer
        yield (time.perf_counter() - began_s) * 1000


@contextmanager
def deaf() -> Iterator[str]:
    """Listen with a full queue, so that no connection is answered or refused; yields the URL."""
    with ExitStack() as stack:
        listener = stack.enter_context(socket.socket())
        listener.bind((HOST, 0))
        listener.listen(0)
        for _ in range(4):
            waiting = stack.enter_context(socket.socket())
            waiting.settimeout(0)
            waiting.connect_ex(listener.getsockname())
        url = f"http://{HOST}:{listener.getsockname()[1]}"
        assert urlsplit(url).port
        yield url
