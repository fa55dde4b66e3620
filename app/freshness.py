"""Read-your-writes: a short, bounded wait until read models have passed a place in the log."""

import time
from collections.abc import Collection
from threading import Event

from domain.application import Log
from projections.database import Database
from projections.positions import Positions

WAIT_S = 0.25  # A projector that runs needs a few milliseconds; one that does not costs no more.
STEP_MIN_S = 0.001
STEP_MAX_S = 0.01


def wait_until_projected(
    log: Log,
    database: Database,
    positions: Positions,
    names: Collection[str],
    wait_s: float = WAIT_S,
) -> bool:
    """Wait until these read models stand where the log stood at the call.

    Returns False when it took too long, or when one of them has failed and would not come.
    """
    goal = log.head()
    deadline = time.monotonic() + wait_s
    step_s = STEP_MIN_S
    pause = Event()
    while True:
        known = positions.all(database)
        places = [known[name] for name in names if name in known]
        if len(places) == len(names) and all(place.position >= goal for place in places):
            return True
        stopped = any(place.failure is not None for place in places)
        if stopped or time.monotonic() + step_s > deadline:
            return False
        pause.wait(step_s)
        step_s = min(2 * step_s, STEP_MAX_S)
