"""The entry of a service whose providers are scripted servers.

`python -m tests.faults.provided serve` runs what `python -m app serve` runs. The environment says
after how many seconds a network shows all that it has done (FAULTS_SETTLES_S), instead of its own
minutes, and by how many seconds the clock of this life is ahead (FAULTS_AHEAD_S).
"""

import os
import sys
from datetime import datetime, timedelta
from typing import Any

import app.bootstrap.container
from app.adapters.networks.airalo.network import Airalo
from app.adapters.networks.bics.network import BicsNetwork
from app.adapters.networks.esimgo.network import EsimGo
from domain.cause import Clock, utc_now
from tests.faults.parent import end_with_parent

settles_after = timedelta(seconds=float(os.environ["FAULTS_SETTLES_S"]))
ahead = timedelta(seconds=float(os.environ["FAULTS_AHEAD_S"]))


def clock_ahead() -> datetime:
    """Return what the clock of this life shows."""
    return utc_now() + ahead


class Container(app.bootstrap.container.Container):
    """The parts of a process, in a life of its own time."""

    def __init__(self, settings: Any, clock: Clock = clock_ahead) -> None:
        super().__init__(settings, clock)


if __name__ == "__main__":
    from app.cli.root import main

    app.bootstrap.container.Container = Container  # type: ignore[misc]  # Before it is imported.
    for network in (Airalo, BicsNetwork, EsimGo):
        network.settles_after = settles_after
    end_with_parent()
    sys.exit(main())
