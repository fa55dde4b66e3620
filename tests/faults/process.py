"""The entry of a process under test: the production entry, with failpoints around its parts.

`python -m tests.faults.process worker` runs what `python -m app worker` runs; so does it a command,
whose role is its first word. The environment says where failpoints are armed (FAULTS_DIRECTORY),
and the file CLOCK in that directory by how many seconds the clock is wrong.
"""

import os
import sys
from datetime import datetime, timedelta
from pathlib import Path
from threading import Event, Thread
from typing import Any

from pika.adapters.blocking_connection import BlockingChannel

import app.bootstrap.container
from app.bootstrap.container import part
from domain.cause import Clock, utc_now
from domain.log.log import Log
from projections.engine.database import Database
from projections.engine.positions import Positions
from projections.stores.counters import Counters
from tests.faults.failpoints import (
    ARMED,
    CLOCK,
    Around,
    Failpoints,
    MovingDatabase,
    MovingPositions,
    Passing,
)
from tests.faulty_network import CHANGES
from workers.fees import MonthlyFees

FEES_S = 2.0  # Instead of a minute: debtors come all the while.
LOOK_S = 0.5
NETWORK_CALLS = (*CHANGES, "available_esims", "find_endpoint", "lpa", "suspend", "resume")

directory = Path(os.environ["FAULTS_DIRECTORY"])
role = sys.argv[1]
passing = Passing(Failpoints(directory / ARMED), role)


def wrong_clock() -> datetime:
    """Return what a clock shows that somebody has moved."""
    return utc_now() + timedelta(seconds=float((directory / CLOCK).read_text()))


class Container(app.bootstrap.container.Container):
    """The parts of a process, with places to be killed at."""

    def __init__(self, settings: Any, clock: Clock = wrong_clock) -> None:
        super().__init__(settings, clock)

    @part
    def log(self) -> Log:
        return passing.watch(super().log)

    @part
    def positions(self) -> Positions:
        return MovingPositions()

    @part
    def views(self) -> Database:
        assert isinstance(self.positions, MovingPositions)
        return MovingDatabase(super().views, self.positions, passing)

    @part
    def provider(self) -> Any:
        return Around(super().provider, passing, {"look_up": "look up"})

    @part
    def network(self) -> Any:
        places = {call: f"network {call}" for call in NETWORK_CALLS}
        return Around(super().network, passing, places)

    @part
    def publisher(self) -> Any:
        return Around(super().publisher, passing, {"publish": "publish"})

    @property
    def monthly_fees(self) -> MonthlyFees:  # type: ignore[override]  # Made anew, on purpose.
        """Fees that forget their last round, so that organizations with a past are noticed."""
        self.__dict__.pop("monthly_fees", None)
        return super().monthly_fees


app.bootstrap.container.Container = Container  # type: ignore[misc]  # Before anybody else imports it.
BlockingChannel.basic_ack = passing.wrap(BlockingChannel.basic_ack, "ack")
Counters.reset_sandbox = passing.wrap(Counters.reset_sandbox, "forget")  # type: ignore[method-assign]  # In this process.


def end_with_parent() -> None:
    """End this process when the tests are gone, because nobody else would end it."""
    Thread(target=_watch, args=(os.getppid(),), daemon=True).start()


def _watch(parent: int) -> None:
    never = Event()
    while os.getppid() == parent:
        never.wait(LOOK_S)
    os._exit(1)


if __name__ == "__main__":
    import app.processes.runtime
    from app.cli.root import main

    app.processes.runtime.MONTHLY_FEES_S = FEES_S
    end_with_parent()
    sys.exit(main())
