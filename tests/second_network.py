"""A second network of an installation: the simulator under another name, with faults on demand."""

from threading import Event

import pytest

from app.adapters.networks.simulated.network import SimulatedNetwork
from app.bootstrap import providers
from app.bootstrap.container import Container
from tests.faulty_network import FaultyNetwork

SECOND = "second"


def add_to(environment: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """Let the processes of this environment have it beside the simulated one."""
    environment["NETWORK_PROVIDER"] = f"simulated,{SECOND}"

    def make(container: Container) -> FaultyNetwork:
        stores, wait = container.stores, Event().wait
        inner = SimulatedNetwork(
            stores, container.clock, SECOND, sandbox=True, wait=wait, name=SECOND
        )
        inner.metadata.create_all(stores.engine)
        return FaultyNetwork(inner)

    monkeypatch.setitem(providers.NETWORKS, SECOND, make)
    monkeypatch.setattr(providers, "OURS", providers.OURS | {SECOND})
    return environment
