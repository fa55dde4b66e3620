"""What one lookup, job item, link and delivery takes of the database and of the processor.

Bytes are those of all tables with their indexes. What a link takes later, by readings and changes,
is not in it. The deployment book shows the figures in "How big, how many, how long".
"""

import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import cycle
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Thread
from typing import Any
from urllib.parse import quote

from app.processes.capacity import sizes_of
from tests.bench.crowd import crowd
from tests.bench.installation import Connection, environment, new_partner, opened
from tests.bench.numbers import real_numbers
from tests.bench.processor import us_each
from tests.bench.row import Aim, Row
from tests.bench.server import HOST, service
from tests.installation import Parts
from tests.plan_files import import_plans, plan, stored
from tests.servers.guard import wait_for
from tests.servers.running import free_port

CROWD = 8
LOOKUPS_EACH, JOBS, ITEMS, LINKS_EACH = 1_000, 20, 1_000, 50
SETTLE_S = 60.0


class Endpoint(BaseHTTPRequestHandler):
    """Takes each delivery."""

    protocol_version = "HTTP/1.1"
    taken = 0

    def do_POST(self) -> None:
        """Answer 200."""
        self.rfile.read(int(self.headers["Content-Length"]))
        type(self).taken += 1
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Say nothing."""


class Partner:
    """Who asks over HTTP, and what his requests have cost the installation."""

    def __init__(self, container: Parts, port: int, pids: list[int]) -> None:
        self.container, self.port, self.pids = container, port, pids
        self.token, self.numbers = new_partner(container).token, cycle(real_numbers())
        self.body = {"plan_id": str(stored(container).id), "name": "Device"}

    def post(self, count: int, path: Callable[[], str], body: object = None) -> list[Any]:
        with closing(Connection(self.port, self.token)) as connection:
            return [connection.ask("POST", path(), body) for _ in range(count)]

    def look_up(self) -> None:
        paths = (f"/number-lookup?phone_number={quote(each)}" for each in self.numbers)
        self.post(LOOKUPS_EACH, lambda: next(paths))

    def run_jobs(self) -> None:
        body = {"phone_numbers": real_numbers()}
        for job in self.post(JOBS, lambda: "/number-lookup/bulk", body):
            assert wait_for(partial(self.is_completed, job["job_id"]), SETTLE_S)

    def is_completed(self, job_id: str) -> bool:
        with closing(Connection(self.port, self.token)) as connection:
            job = connection.ask("GET", f"/number-lookup/bulk/{job_id}?fields=summary")
        return bool(job["status"] == "completed")

    def buy(self) -> None:
        self.post(LINKS_EACH, lambda: "/v1/links", self.body)

    def cost(self, name: str, count: int, run: Callable[[], object]) -> tuple[float, float]:
        """Return the bytes and the µs of one."""

        def whole() -> None:
            run()
            assert wait_for(self.is_settled, SETTLE_S)

        before = sizes_of(self.container)
        us = us_each(count, self.pids, whole)
        after = sizes_of(self.container)
        each = {part: (after[part] - before[part]) / count for part in after}
        parts = ", ".join(f"{part} {size:.0f}" for part, size in each.items())
        print(f"  {name}: {us:.0f} µs; bytes: {parts}", file=sys.stderr)
        return sum(each.values()), us

    def is_settled(self) -> bool:
        lags = self.container.observed.follower_lags()
        pending, _ = self.container.webhook_deliveries.backlog()
        return not pending and not any(lag.behind for lag, _ in lags)


def measure() -> Iterator[Row]:
    with TemporaryDirectory(prefix="bench-") as name:
        directory, port = Path(name), free_port()
        settings = environment(directory, WEBHOOKS_ALLOW_PRIVATE="true")
        container = opened(settings)
        import_plans(container, plan())
        with service(settings, port, directory / "service.log") as running:
            partner = Partner(container, port, [*running.pids.values()])
            yield from _rows(partner)
        container.close()


def _rows(partner: Partner) -> Iterator[Row]:
    links = CROWD * LINKS_EACH
    crowd(CROWD, partner.buy)  # The simulated network's own stock is made once.
    costs = {
        "lookup": partner.cost(
            "lookup", CROWD * LOOKUPS_EACH, lambda: crowd(CROWD, partner.look_up)
        ),
        "job item": partner.cost("job item", JOBS * ITEMS, partner.run_jobs),
        "link": partner.cost("link", links, lambda: crowd(CROWD, partner.buy)),
    }
    with ThreadingHTTPServer((HOST, 0), Endpoint) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        body = {"url": f"http://{HOST}:{server.server_port}/", "events": ["link.activated"]}
        partner.post(1, lambda: "/v1/webhooks", body)
        told = partner.cost("link, told", links, lambda: crowd(CROWD, partner.buy))
        assert Endpoint.taken == links
        server.shutdown()
    costs["delivery"] = (told[0] - costs["link"][0], told[1] - costs["link"][1])
    for name, (size, us) in costs.items():
        yield Row(f"{name}, bytes in the database", size, None, "bytes", Aim())
        yield Row(f"{name}, processor time", us, None, "µs", Aim())
