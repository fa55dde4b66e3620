"""The entry of a service whose providers are scripted servers.

`python -m tests.faults.provided serve` runs what `python -m app serve` runs. The environment says
after how many seconds a network shows all that it has done (FAULTS_SETTLES_S), instead of its own
minutes.
"""

import os
import sys
from datetime import timedelta

from app.adapters.networks.airalo.network import Airalo
from app.adapters.networks.bics.network import BicsNetwork
from app.adapters.networks.esimgo.network import EsimGo
from tests.faults.parent import end_with_parent

settles_after = timedelta(seconds=float(os.environ["FAULTS_SETTLES_S"]))

if __name__ == "__main__":
    from app.cli.root import main

    for network in (Airalo, BicsNetwork, EsimGo):
        network.settles_after = settles_after
    end_with_parent()
    sys.exit(main())
