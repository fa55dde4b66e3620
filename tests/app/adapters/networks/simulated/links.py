"""Endpoints of the simulator, and one that tests read from two processes in turn."""

from datetime import timedelta
from itertools import cycle

from app.adapters.networks.simulated.network import SimulatedNetwork
from domain.links.network import AddonUsage, Endpoint, NetworkStatus, ProviderPlan, Usage
from tests.contracts.esim_networks import (
    BASE_PLAN,
    OTHER_PLAN,
    PLAN,
    TIMEOUT_S,
    SimulatedSide,
    a_link,
)


class Link:
    """An endpoint and the moment when it was made; `after` moves the clock to a time since then."""

    def __init__(self, side: SimulatedSide) -> None:
        self.side = side
        self.made_at = side.clock()
        self._processes = cycle([side.connect(), side.connect()])
        self.endpoint_id = a_link(self.network)

    @property
    def network(self) -> SimulatedNetwork:
        return next(self._processes)

    def after(self, **passed: float) -> Usage:
        self.side.clock.now = self.made_at + timedelta(**passed)
        return self.now

    @property
    def now(self) -> Usage:
        return self.network.usage(self.endpoint_id, timeout_s=TIMEOUT_S)

    @property
    def status(self) -> NetworkStatus:
        return self.network.status(self.endpoint_id, timeout_s=TIMEOUT_S)

    def add(self, plan: ProviderPlan = OTHER_PLAN, reference: str = "topup-1") -> str:
        return self.network.add_plan(
            self.endpoint_id, plan, reference, timeout_s=TIMEOUT_S
        ).addon_id

    def suspend(self) -> None:
        self.network.suspend(self.endpoint_id, timeout_s=TIMEOUT_S)

    def resume(self) -> None:
        self.network.resume(self.endpoint_id, timeout_s=TIMEOUT_S)


def only(usage: Usage) -> AddonUsage:
    (addon,) = usage.addons
    return addon


def create(
    network: SimulatedNetwork,
    iccid: str,
    plan: ProviderPlan = PLAN,
    reference: str = "link-1",
    timeout_s: float = TIMEOUT_S,
) -> Endpoint:
    return network.create_endpoint(iccid, plan, BASE_PLAN, reference, timeout_s=timeout_s)


def addons(network: SimulatedNetwork, endpoint_id: str) -> list[str]:
    usage = network.usage(endpoint_id, timeout_s=TIMEOUT_S)
    return [addon.addon_id for addon in usage.addons]
