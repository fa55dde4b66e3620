"""How long a job of one number waits behind 250 jobs of 1,000 numbers of another organization.

Beside it the same job while nothing else is to be done, in the same installation before.
"""

import os
from collections.abc import Iterator
from statistics import median
from threading import Event
from time import perf_counter

from tests.bench.installation import Connection
from tests.bench.numbers import real_numbers
from tests.bench.row import Aim, Row
from tests.bench.rows.lookups import installation
from tests.bench.server import service
from tests.servers.running import free_port

JOBS = int(os.environ.get("BENCH_JOBS") or 250)
TRIES = 7
LATER_MAX_S = 1.0
LOOK_S = 0.005
ENDED_S = 60.0
BULK = "/number-lookup/bulk"


def measure() -> Iterator[Row]:
    with installation() as made:
        settings = {**made.settings, "JOB_ITEMS_OPEN_MAX": str(JOBS * 2_000)}
        port = free_port()
        with service(settings, port, made.directory / "service.log"):
            busy, quiet = (Connection(port, token) for token in made.tokens[:2])
            alone_s = _ended_s(quiet)
            numbers = real_numbers()
            for _ in range(JOBS):
                busy.ask("POST", BULK, {"phone_numbers": numbers})
            behind_s = _ended_s(quiet)
            waiting = busy.ask("GET", f"{BULK}?status=pending")
        assert waiting, "the other jobs had begun all before"
    name = f"a job of one number behind {JOBS} jobs of 1,000, beside the same alone"
    yield Row(name, behind_s, alone_s, "s", Aim(ours_max=alone_s + LATER_MAX_S))


def _ended_s(partner: Connection) -> float:
    """Create a job several times; return the median of the seconds until it had ended."""
    taken_s = []
    for _ in range(TRIES):
        began_s = perf_counter()
        job = partner.ask("POST", BULK, {"phone_numbers": real_numbers()[:1]})
        pause = Event()
        while partner.ask("GET", f"{BULK}/{job['job_id']}")["status"] != "completed":
            assert perf_counter() - began_s < ENDED_S, "the job does not end"
            pause.wait(LOOK_S)
        taken_s.append(perf_counter() - began_s)
    return median(taken_s)
