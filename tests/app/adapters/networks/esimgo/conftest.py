"""A scripted eSIM Go with a clock that tests move, and adapters that call it."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from app.adapters.networks.esimgo.network import EsimGo
from app.adapters.remote.api import RemoteApi
from domain.links.network import ProviderPlan
from tests.installation import SetClock
from tests.support.providers.esimgo import KEY, EsimGoServer

PLAN = ProviderPlan("esim_1GB_7D_FR_V2", data_mb=1_000, validity_days=7)
OTHER_PLAN = ProviderPlan("esim_3GB_30D_FR_V2", data_mb=3_000, validity_days=30)
TIMEOUT_S = 5.0

Connect = Callable[..., EsimGo]


@pytest.fixture
def clock() -> SetClock:
    return SetClock()


@pytest.fixture
def server(clock: SetClock) -> Iterator[EsimGoServer]:
    with EsimGoServer(clock) as made:
        made.offer(PLAN.provider_plan_id)
        made.offer(OTHER_PLAN.provider_plan_id, "6.10", quantity=3_000_000_000, days=30)
        yield made


@pytest.fixture
def connect(server: EsimGoServer, clock: SetClock) -> Iterator[Connect]:
    """Make adapters, each as another process would have it."""
    apis: list[RemoteApi] = []

    def make(*, key: str = KEY, refunds: bool = True, **rest: Any) -> EsimGo:
        rest = {"headers": {"X-API-Key": key}, "clock": clock, **rest}
        apis.append(RemoteApi("esimgo", server.url, **rest))
        return EsimGo(apis[-1], key, clock, refunds=refunds)

    yield make
    for each in apis:
        each.close()


@pytest.fixture
def network(connect: Connect) -> EsimGo:
    return connect()
