"""A round of background reading over ten thousand links, beside the same reads from memory.

The network answers at once, so that only what the reading itself takes is measured: the stream of
each link, its usage, its next turn.
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta

from app.bootstrap.container import Container
from domain.cause import utc_now
from domain.links.network import AddonUsage, Usage
from tests.bench.fleet import PLAN, append_links
from tests.bench.installation import installation
from tests.bench.partners import new_partner
from tests.bench.row import Aim, Row
from workers.reading import BackgroundReading

LINKS = 10_000
EVERY = timedelta(seconds=900)


@contextmanager
def prepared() -> Iterator[tuple[Container]]:
    """Make the links, and let a quarter of an hour pass."""
    with installation() as container:
        append_links(container, new_partner(container).organization, LINKS)
        container.projector.catch_up()
        started = utc_now()
        container.clock = lambda: utc_now() + EVERY
        _answer_at_once(container)
        _round(container.background_reading)  # What is new is recorded at first.
        assert utc_now() - started < EVERY
        yield (container,)


def measure(container: Container) -> Iterator[Row]:
    reading = container.background_reading
    later = container.clock() + EVERY
    reading.clock = lambda: later + EVERY
    began_s, worked_s = time.monotonic(), time.process_time()
    assert _round(reading) == LINKS
    wall_s, spent_s = time.monotonic() - began_s, time.process_time() - worked_s
    share = Aim(ratio_max=0.1)
    every_s = EVERY.total_seconds()
    yield Row(f"{LINKS:,} links read in the background", wall_s, every_s, "s", share)
    yield Row("processor time of a round of them", spent_s, every_s, "s", share)
    fed = time.monotonic()
    reading.tick()
    yield Row("a tick that finds nothing", (time.monotonic() - fed) * 1e3, 1_000, "ms", share)


def _round(reading: BackgroundReading) -> int:
    """Read what is due in one thread, as fast as the databases are."""
    (lane,), count = reading.lanes.values(), 0
    lane.per_s = 1e9
    while reading.tick():
        while (taken := lane.take()) is not None:
            lane.done(answered=reading.read(taken[0], taken[1].usage))
            count += 1
    return count


def _answer_at_once(container: Container) -> None:
    def usage(endpoint_id: str, *, timeout_s: float) -> Usage:
        assert timeout_s > 0
        addon = AddonUsage(endpoint_id.replace("ep-", "ad-"), PLAN.provider_plan_id, 600.5, 399.5)
        return Usage("active", [addon], container.background_reading.clock())

    container.network.usage = usage  # type: ignore[method-assign]  # Only for this measurement.
