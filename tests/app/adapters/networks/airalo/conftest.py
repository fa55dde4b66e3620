"""A scripted Airalo with a clock that tests move, and adapters that call it."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing

import pytest

from app.adapters.networks.airalo.network import Airalo
from domain.links.network import ProviderPlan
from tests.installation import SetClock
from tests.support.providers.airalo import CLIENT_SECRET, AiraloServer, airalo_at

PLAN = ProviderPlan("brand-7days-1gb", data_mb=1_000, validity_days=7)
OTHER_PLAN = ProviderPlan("brand-30days-3gb", data_mb=3_000, validity_days=30)
TIMEOUT_S = 5.0

Connect = Callable[..., Airalo]


@pytest.fixture
def clock() -> SetClock:
    return SetClock()


@pytest.fixture
def server(clock: SetClock) -> Iterator[AiraloServer]:
    with AiraloServer(clock) as made:
        made.offer(PLAN.provider_plan_id)
        made.offer(OTHER_PLAN.provider_plan_id, "6.10", gb=3, day=30)
        yield made


@pytest.fixture
def connect(server: AiraloServer, clock: SetClock) -> Iterator[Connect]:
    """Make adapters, each as another process would have it."""
    with ExitStack() as opened:

        def make(secret: str = CLIENT_SECRET) -> Airalo:
            network, api = airalo_at(server.url, clock, secret)
            opened.enter_context(closing(api))
            return network

        yield make


@pytest.fixture
def network(connect: Connect) -> Airalo:
    return connect()
