"""Each call against each fault: by the provider's books it is true, and it holds no secret."""

import logging
import traceback
from collections.abc import Callable
from dataclasses import dataclass

import pytest

from app.adapters.networks.airalo.network import Airalo
from domain.links.network import Order
from domain.provider_errors import OutcomeUnknown, ProviderError, Unavailable
from tests.app.adapters.networks.airalo.conftest import OTHER_PLAN, PLAN, TIMEOUT_S
from tests.canaries import canaries_in
from tests.support.providers.airalo import CLIENT_SECRET, AiraloServer
from tests.support.providers.server import FaultKind

SHORT_S = 0.1


@dataclass(frozen=True)
class Call:
    """A call of the port, the route that it depends on, and what it may raise."""

    run: Callable[[Airalo, Order], object]
    route: str
    may_raise: tuple[type[ProviderError], ...] = (Unavailable,)


CHANGES = (Unavailable, OutcomeUnknown)
CALLS = {
    "order": Call(lambda it, _: it.order(PLAN, "link-2", timeout_s=SHORT_S), "order", CHANGES),
    "add_plan": Call(
        lambda it, order: it.add_plan(order.iccid, OTHER_PLAN, "c-1", timeout_s=SHORT_S),
        "order",
        CHANGES,
    ),
    "orders": Call(
        lambda it, order: it.orders(PLAN, *[order.placed_at] * 2, timeout_s=SHORT_S), "orders"
    ),
    "usage": Call(lambda it, order: it.usage(order.iccid, timeout_s=SHORT_S), "packages"),
    "lpa": Call(lambda it, order: it.lpa(order.iccid, timeout_s=SHORT_S), "esim"),
    "supplied": Call(lambda it, _: [*it.supplied(timeout_s=SHORT_S)], "catalogue"),
    "balance": Call(lambda it, _: it.balance(timeout_s=SHORT_S), "balance"),
}
# Reads go one way through the adapter, so two of them stand for all.
SHOWN = {"order", "add_plan", "orders", "usage"}
NAMES = [pytest.param(n, marks=() if n in SHOWN else pytest.mark.soak) for n in CALLS]


@pytest.mark.parametrize("kind", FaultKind)
@pytest.mark.parametrize("name", NAMES)
def test_every_call_tells_the_truth_of_every_fault(
    name: str,
    kind: FaultKind,
    network: Airalo,
    server: AiraloServer,
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.DEBUG)
    call, order = CALLS[name], network.order(PLAN, "link-1", timeout_s=TIMEOUT_S)
    before = [*server.sales]
    server.fault(kind, on=call.route, times=9, seconds=1.0)
    error: ProviderError | None = None

    try:
        call.run(network, order)
    except call.may_raise as caught:
        error = caught

    if error is not None:
        texts = "\n".join([*map(str, traceback.format_exception(error)), caplog.text])
        assert canaries_in(texts) == set()
        assert CLIENT_SECRET not in texts
        assert server.tokens[-1] not in texts
    if call.may_raise == CHANGES:
        with server.lock:
            happened = server.sales != before
        if isinstance(error, Unavailable):
            assert not happened
        if error is None:
            assert happened


@pytest.mark.parametrize("kind", FaultKind)
def test_a_login_that_fails_is_an_outage_and_buys_nothing(
    kind: FaultKind, network: Airalo, server: AiraloServer
) -> None:
    server.fault(kind, on="token", times=9, seconds=1.0)

    if kind in {FaultKind.DUPLICATE, FaultKind.EFFECT_TWICE}:
        assert network.order(PLAN, "link-1", timeout_s=TIMEOUT_S)
        return
    with pytest.raises(Unavailable):
        network.order(PLAN, "link-1", timeout_s=SHORT_S)
    assert server.sales == []
