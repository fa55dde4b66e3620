"""Each call against each fault: what it raises is true, and holds neither secret nor number."""

import logging
import traceback
from collections.abc import Callable
from dataclasses import dataclass

import pytest

from app.adapters.networks.esimgo.network import EsimGo
from domain.links.network import Order
from domain.provider_errors import OutcomeUnknown, ProviderError, Rejected, Unavailable
from tests.app.adapters.networks.esimgo.conftest import OTHER_PLAN, PLAN, TIMEOUT_S, Connect
from tests.canaries import canaries_in
from tests.support.providers.esimgo import KEY, EsimGoServer
from tests.support.providers.server import FaultKind

SHORT_S = 0.1
SENT_S = 0.5  # A request has been sent by then, on a crowded machine too.
LATE = {FaultKind.DELAY, FaultKind.LATE_REPLY}
# The provider, or a proxy before it, does what it was asked to do more than once.
TWICE = {FaultKind.EFFECT_TWICE}
SLOW = LATE | {FaultKind.DRIBBLE}


@dataclass(frozen=True)
class Call:
    """A call of the port, the route that it depends on, and what it may raise."""

    run: Callable[[EsimGo, Order, float], object]
    route: str
    may_raise: tuple[type[ProviderError], ...] = (Unavailable,)


CHANGES = (Unavailable, OutcomeUnknown)
CALLS = {
    "probe": Call(lambda it, _, s: it.probe(timeout_s=s), "organisation"),
    "balance": Call(lambda it, _, s: it.balance(timeout_s=s), "organisation"),
    "supplied": Call(lambda it, _, s: [*it.supplied(timeout_s=s)], "catalogue"),
    "operators": Call(lambda it, _, s: [*it.supplied(timeout_s=s)], "networks"),
    "orders": Call(
        lambda it, order, s: it.orders(PLAN, *[order.placed_at] * 2, timeout_s=s), "orders"
    ),
    "usage": Call(lambda it, order, s: it.usage(order.iccid, timeout_s=s), "bundles"),
    "life cycle": Call(lambda it, order, s: it.usage(order.iccid, timeout_s=s), "esim"),
    "status": Call(lambda it, order, s: it.status(order.iccid, timeout_s=s), "location"),
    "lpa": Call(lambda it, order, s: it.lpa(order.iccid, timeout_s=s), "esim"),
    "order": Call(lambda it, _, s: it.order(PLAN, "link-2", timeout_s=s), "order", CHANGES),
    "add_plan": Call(
        lambda it, order, s: it.add_plan(order.iccid, OTHER_PLAN, "c-1", timeout_s=s),
        "order",
        CHANGES,
    ),
    "remove_plan": Call(
        lambda it, order, s: it.remove_plan(order.iccid, "200000001", timeout_s=s),
        "revoke",
        CHANGES,
    ),
    "take_back": Call(lambda it, order, s: it.take_back(order, timeout_s=s), "revoke", CHANGES),
    "suspend": Call(lambda it, order, s: it.suspend(order.iccid, timeout_s=s), "suspend", CHANGES),
    "resume": Call(lambda it, order, s: it.resume(order.iccid, timeout_s=s), "suspend", CHANGES),
}


def state_of(server: EsimGoServer) -> object:
    """Return all that a change could have moved."""
    with server.lock:
        esims = [(each.iccid, each.state, each.gone) for each in server.esims.values()]
        puts = [put.id for each in server.esims.values() for put in each.present]
        return esims, puts, server.balance


def prepared(network: EsimGo, server: EsimGoServer, name: str) -> Order:
    """Buy an eSIM on which the call makes sense."""
    order = network.order(PLAN, "link-1", timeout_s=TIMEOUT_S)
    if name == "resume":
        network.suspend(order.iccid, timeout_s=TIMEOUT_S)
    if name == "remove_plan":
        server.install(order.iccid)
    return order


# Reads go one way through the adapter, so two of them stand for all.
SHOWN = {"usage", "orders", *(name for name, call in CALLS.items() if call.may_raise == CHANGES)}
NAMES = [pytest.param(n, marks=() if n in SHOWN else pytest.mark.soak) for n in CALLS]


@pytest.mark.parametrize("kind", FaultKind)
@pytest.mark.parametrize("name", NAMES)
def test_every_call_tells_the_truth_of_every_fault(
    name: str,
    kind: FaultKind,
    network: EsimGo,
    server: EsimGoServer,
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.DEBUG)
    call, order = CALLS[name], prepared(network, server, name)
    before = state_of(server)
    server.fault(kind, on=call.route, times=9, seconds=1.0)
    error: ProviderError | None = None

    try:
        call.run(network, order, SHORT_S)
    except call.may_raise as caught:
        error = caught
    except Rejected as caught:
        assert kind in TWICE  # The second effect was refused, as the first one had done it all.
        error = caught

    if error is not None:
        texts = [*map(str, traceback.format_exception(error)), caplog.text]
        assert canaries_in("\n".join(texts)) == set()
        assert KEY not in "\n".join(texts)
    if call.route in {"revoke", "order", "suspend"}:
        happened = state_of(server) != before
        if isinstance(error, Unavailable):
            assert not happened
        if error is None:
            assert happened


@pytest.mark.parametrize(
    ("name", "look"), [("remove_plan", "bundles"), ("take_back", "bundles"), ("suspend", "esim")]
)
def test_a_change_that_was_sent_twice_is_unknown_where_nobody_can_look(
    name: str, look: str, network: EsimGo, server: EsimGoServer
) -> None:
    call, order = CALLS[name], prepared(network, server, name)
    before = state_of(server)
    server.fault(FaultKind.EFFECT_TWICE, on=call.route)
    if name != "suspend":  # It looks first, too.
        server.fault(FaultKind.DELAY, on=look, seconds=0.0)
    server.fault(FaultKind.HTML, on=look, times=9)

    with pytest.raises(OutcomeUnknown):
        call.run(network, order, TIMEOUT_S)

    assert state_of(server) != before


@pytest.mark.parametrize("kind", sorted(SLOW))
def test_no_call_outlasts_its_time(kind: FaultKind, connect: Connect, server: EsimGoServer) -> None:
    network = connect()
    order = prepared(network, server, "usage")
    server.fault(kind, times=99, seconds=30.0)

    with pytest.raises(Unavailable):
        network.usage(order.iccid, timeout_s=SHORT_S)
    with pytest.raises(OutcomeUnknown):
        network.order(PLAN, "link-2", timeout_s=SENT_S)
