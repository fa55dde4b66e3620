"""A second network of an installation: the simulator under another name, with faults on demand."""

from threading import Event

import pytest

from app.adapters.networks.simulated.network import SimulatedNetwork
from app.bootstrap import providers
from app.bootstrap.container import Container
from tests.faulty_network import FaultyNetwork
from tests.installation import Installation

SECOND = "second"


def add_second(
    installation: Installation, monkeypatch: pytest.MonkeyPatch, *, remote: bool = False
) -> None:
    """Let the processes that are opened from now on have it beside the simulated one."""
    installation.environment["NETWORK_PROVIDER"] = f"simulated,{SECOND}"

    def make(container: Container) -> FaultyNetwork:
        stores, clock = container.stores, container.clock
        inner = SimulatedNetwork(
            stores, clock, SECOND, sandbox=True, wait=Event().wait, name=SECOND
        )
        inner.metadata.create_all(stores.engine)
        network = FaultyNetwork(inner)
        network.remote = remote
        return network

    monkeypatch.setitem(providers.NETWORKS, SECOND, make)
