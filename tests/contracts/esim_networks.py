"""The networks that the contract of the eSIM port is held against, each with its far side."""

from collections.abc import Callable, Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any

from app.adapters.circuit import CircuitBreaker, GuardedNetwork
from app.adapters.networks.airalo.network import Airalo
from app.adapters.networks.bics.network import BicsNetwork
from app.adapters.networks.bics.session import Session
from app.adapters.networks.esimgo.network import EsimGo
from app.adapters.networks.simulated.network import SimulatedNetwork
from app.adapters.remote.api import RemoteApi
from app.adapters.sqlite.database import engine_for
from app.adapters.sqlite.file import DatabaseFile
from domain.cause import Clock
from domain.links.network import Capability, EsimNetwork, Order, ProviderPlan
from domain.provider_errors import OutcomeUnknown
from projections.engine.database import Database
from tests.installation import SetClock
from tests.order_network import OrderBook, SellingByOrder
from tests.support.providers import bics
from tests.support.providers.airalo import CLIENT_SECRET, AiraloServer, airalo_at
from tests.support.providers.esimgo import KEY, MB, EsimGoServer

PLAN = ProviderPlan("eu-1gb-7d", data_mb=1_000, validity_days=7)
OTHER_PLAN = ProviderPlan("eu-3gb-30d", data_mb=3_000, validity_days=30)
BASE_PLAN = "base"
SPONSOR = "sp-atlas"
UNKNOWN_ICCID = "8900000000000000000"
UNKNOWN_ENDPOINT = "no-such-endpoint"
TIMEOUT_S = 5.0


class FarSide:
    """A network with its own side, which no adapter can reach.

    With the plan `slow` it never answers a change in time. `product` is one that it sells.
    `reactivates`: it can be asked to make an inactive endpoint active.
    """

    slow: ProviderPlan
    product = ""
    reactivates = False

    def connect(self) -> Any:
        """Return an adapter as another process would have it."""
        raise NotImplementedError

    def forward(self, by: timedelta) -> None:
        """Let time pass at the network."""
        raise NotImplementedError

    def deactivate(self, endpoint_id: str) -> None:
        """Make an endpoint inactive."""
        raise NotImplementedError

    def install(self, endpoint_id: str) -> None:
        """Install its eSIM on a device; most do so by themselves, or do not tell."""

    def break_down(self) -> None:
        """Make every later call fail."""
        raise NotImplementedError

    def close(self) -> None:
        """Let go of what it holds."""


class SimulatedSide(FarSide):
    """The simulator over one file; waiting costs no time but moves its clock."""

    slow = ProviderPlan("sandbox-slow", data_mb=1_000, validity_days=7)
    product = "esim"
    reactivates = True

    def __init__(self, directory: Path) -> None:
        self._path = directory / "network.db"
        self._databases: list[Database] = []
        self.clock = SetClock()
        self.waits_s: list[float] = []
        with self.database().writing() as connection:
            self.connect().metadata.create_all(connection)

    def database(self) -> Database:
        self._path.touch()
        opened = Database(engine_for(DatabaseFile(self._path), synchronous="NORMAL"))
        self._databases.append(opened)
        return opened

    def connect(
        self, seed: str = "seed", *, sandbox: bool = True, clock: Clock | None = None
    ) -> SimulatedNetwork:
        chosen = clock or self.clock
        return SimulatedNetwork(self.database(), chosen, seed, sandbox=sandbox, wait=self._wait)

    def forward(self, by: timedelta) -> None:
        self.clock.now += by

    def deactivate(self, endpoint_id: str) -> None:
        self.connect().play(endpoint_id, lambda it, now: it.stopped("inactive", now))

    def break_down(self) -> None:
        with self._databases[0].writing() as connection:
            self.connect().metadata.drop_all(connection)

    def close(self) -> None:
        for database in self._databases:
            database.close()

    def _wait(self, seconds: float) -> None:
        self.waits_s.append(seconds)
        self.clock.forward(seconds=seconds)


class GuardedSide(SimulatedSide):
    """The same behind a circuit, as a remote network is."""

    def connect(self, *args: Any, **options: Any) -> Any:
        network = super().connect(*args, **options)
        circuit = CircuitBreaker(f"eSIM network {network.name}", int, failures_max=1_000)
        guarded: Any = GuardedNetwork(network, circuit)
        guarded.metadata = network.metadata
        return guarded


class ScriptedSide(FarSide):
    """The far side of an adapter over real sockets: its scripted server."""

    server: Any

    def __init__(self) -> None:
        self._apis: list[RemoteApi] = []

    def break_down(self) -> None:
        self.server.close()

    def close(self) -> None:
        self.server.close()
        for api in self._apis:
            api.close()


class BicsSide(ScriptedSide):
    slow = ProviderPlan(bics.SLOW_PLAN, data_mb=1_000, validity_days=7)
    product = bics.PRODUCT
    reactivates = True

    def __init__(self, _: Path) -> None:
        super().__init__()
        self.server = bics.BicsServer()

    def connect(self) -> BicsNetwork:
        api = RemoteApi("bics", self.server.url, clock=self.server.now)
        self._apis.append(api)
        session = Session(api, bics.USERNAME, bics.PASSWORD)
        return BicsNetwork(session, self.server.now, bics.ROAMING_PROFILE, bics.APN_GROUP)

    def forward(self, by: timedelta) -> None:
        self.server.forward(by)

    def deactivate(self, endpoint_id: str) -> None:
        with self.server.lock:
            self.server.endpoints[endpoint_id].life_cycle = "Active-Inventory"


class EsimGoSide(ScriptedSide):
    slow = ProviderPlan(EsimGoServer.slow, data_mb=1_000, validity_days=7)

    def __init__(self, _: Path) -> None:
        super().__init__()
        self.clock = SetClock()
        self.server = EsimGoServer(self.clock)
        for plan in (PLAN, OTHER_PLAN, self.slow):
            quantity = plan.data_mb * MB
            self.server.offer(plan.provider_plan_id, quantity=quantity, days=plan.validity_days)

    def connect(self, key: str = KEY, *, refunds: bool = True) -> EsimGo:
        headers = {"X-API-Key": key}
        self._apis.append(RemoteApi("esimgo", self.server.url, clock=self.clock, headers=headers))
        return EsimGo(self._apis[-1], key, self.clock, refunds=refunds)

    def forward(self, by: timedelta) -> None:
        """Devices use data while time passes."""
        for iccid in self.server.held:
            self.server.use(iccid, 10 * MB)
        self.clock.now += by

    def deactivate(self, endpoint_id: str) -> None:
        self.server.deactivate(endpoint_id)

    def install(self, endpoint_id: str) -> None:
        self.server.install(endpoint_id)


class AiraloSide(ScriptedSide):
    slow = ProviderPlan(AiraloServer.slow, data_mb=1_000, validity_days=7)

    def __init__(self, _: Path) -> None:
        super().__init__()
        self.clock = SetClock()
        self.server = AiraloServer(self.clock)
        for plan in (PLAN, OTHER_PLAN, self.slow):
            gb, day = plan.data_mb // 1_000, plan.validity_days
            self.server.offer(plan.provider_plan_id, gb=gb, day=day)

    def connect(self, secret: str = CLIENT_SECRET) -> Airalo:
        network, api = airalo_at(self.server.url, self.clock, secret)
        self._apis.append(api)
        return network

    def forward(self, by: timedelta) -> None:
        """Devices use data while time passes."""
        for iccid in self.server.esims:
            self.server.use(iccid, 10)
        self.clock.now += by

    def deactivate(self, endpoint_id: str) -> None:
        self.server.esims[endpoint_id].recycled = True


class LosingReplies(SellingByOrder):
    """Loses the replies to orders of the slow plan."""

    def order(self, plan: ProviderPlan, reference: str, *, timeout_s: float) -> Order:
        order = super().order(plan, reference, timeout_s=timeout_s)
        if plan == BookSide.slow:
            raise OutcomeUnknown
        return order


class BookSide(FarSide):
    """The network by order that other suites use, in this process."""

    slow = ProviderPlan("slow", data_mb=1_000, validity_days=7)
    reactivates = True

    def __init__(self, _: Path) -> None:
        self.clock = SetClock()
        self.book = OrderBook(self.clock)

    def connect(self) -> SellingByOrder:
        return LosingReplies(self.book)

    def forward(self, by: timedelta) -> None:
        self.clock.now += by

    def deactivate(self, endpoint_id: str) -> None:
        self.book.of(endpoint_id).status = "inactive"

    def break_down(self) -> None:
        self.book.is_down = True


STOCKS: Mapping[str, Callable[[Path], FarSide]] = {
    "simulated": SimulatedSide,
    "simulated behind a circuit": GuardedSide,
    "bics": BicsSide,
}
BY_ORDER: Mapping[str, Callable[[Path], FarSide]] = {
    "airalo": AiraloSide,
    "esimgo": EsimGoSide,
    "in this process": BookSide,
}
NETWORKS = {**STOCKS, **BY_ORDER}


def lacks(network: EsimNetwork, *needed: Capability) -> bool:
    """Tell whether a network lacks what a test is about; then a call is refused, and no more."""
    return not network.capabilities.issuperset(needed)


def a_free_esim(network: EsimNetwork, plan: ProviderPlan = PLAN) -> str:
    """Return the ICCID of the first eSIM that is free for a plan."""
    return network.available_esims(plan, SPONSOR, "", page=0, timeout_s=TIMEOUT_S)[0]


def a_link(network: EsimNetwork, plan: ProviderPlan = PLAN, reference: str = "link-1") -> str:
    """Order an eSIM, or create an endpoint on the first free one; return the endpoint's id."""
    if network.shape == "order":
        return network.order(plan, reference, timeout_s=TIMEOUT_S).iccid
    iccid = a_free_esim(network)
    made = network.create_endpoint(iccid, plan, BASE_PLAN, reference, timeout_s=TIMEOUT_S)
    return made.endpoint_id
