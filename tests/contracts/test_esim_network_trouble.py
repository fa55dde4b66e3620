"""The contract that every EsimNetwork signs: time-outs, and a network that answers nobody."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta

import pytest

from domain.links.network import EsimNetwork
from domain.provider_errors import OutcomeUnknown, ProviderError, Unavailable
from tests.contracts.esim_networks import (
    BASE_PLAN,
    OTHER_PLAN,
    PLAN,
    SPONSOR,
    TIMEOUT_S,
    FarSide,
    a_free_esim,
    a_link,
)
from tests.installation import PATIENCE_S

SHORT_S = 0.2


@dataclass(frozen=True)
class Ask:
    """What a call needs: a free eSIM, an endpoint with a plan, and a time-out."""

    network: EsimNetwork
    free_iccid: str
    endpoint_id: str
    addon_id: str
    timeout_s: float


READS: dict[str, Callable[[Ask], object]] = {
    "available_esims": lambda ask: ask.network.available_esims(
        PLAN, SPONSOR, "", page=0, timeout_s=ask.timeout_s
    ),
    "probe": lambda ask: ask.network.probe(timeout_s=ask.timeout_s),
    "find_endpoint": lambda ask: ask.network.find_endpoint(ask.free_iccid, timeout_s=ask.timeout_s),
    "usage": lambda ask: ask.network.usage(ask.endpoint_id, timeout_s=ask.timeout_s),
    "status": lambda ask: ask.network.status(ask.endpoint_id, timeout_s=ask.timeout_s),
    "lpa": lambda ask: ask.network.lpa(ask.free_iccid, timeout_s=ask.timeout_s),
}
CHANGES: dict[str, Callable[[Ask], object]] = {
    "create_endpoint": lambda ask: ask.network.create_endpoint(
        ask.free_iccid, PLAN, BASE_PLAN, "link-2", timeout_s=ask.timeout_s
    ),
    "remove_endpoint": lambda ask: ask.network.remove_endpoint(
        ask.endpoint_id, timeout_s=ask.timeout_s
    ),
    "release_esim": lambda ask: ask.network.release_esim(ask.free_iccid, timeout_s=ask.timeout_s),
    "add_plan": lambda ask: ask.network.add_plan(
        ask.endpoint_id, OTHER_PLAN, "topup-1", timeout_s=ask.timeout_s
    ),
    "remove_plan": lambda ask: ask.network.remove_plan(
        ask.endpoint_id, ask.addon_id, timeout_s=ask.timeout_s
    ),
    "suspend": lambda ask: ask.network.suspend(ask.endpoint_id, timeout_s=ask.timeout_s),
    "resume": lambda ask: ask.network.resume(ask.endpoint_id, timeout_s=ask.timeout_s),
}
CALLS = {**READS, **CHANGES}
MAY_RAISE: dict[str, tuple[type[ProviderError], ...]] = {
    **dict.fromkeys(READS, (Unavailable,)),
    **dict.fromkeys(CHANGES, (Unavailable, OutcomeUnknown)),
}


def ready(network: EsimNetwork, timeout_s: float = TIMEOUT_S) -> Ask:
    endpoint_id = a_link(network)
    (addon,) = network.usage(endpoint_id, timeout_s=TIMEOUT_S).addons
    return Ask(network, a_free_esim(network), endpoint_id, addon.addon_id, timeout_s)


@pytest.mark.parametrize("name", CALLS)
def test_every_call_works_on_a_network_without_trouble(network: EsimNetwork, name: str) -> None:
    ask = ready(network)
    told = CALLS[name](ask)
    # A lookup of a free eSIM finds nothing, and a change tells nothing but what it has made.
    tells = {"available_esims", "usage", "status", "lpa", "create_endpoint", "add_plan"}
    assert (told is not None) == (name in tells)
    known = network.find_endpoint(ask.free_iccid, timeout_s=TIMEOUT_S)
    assert (known is not None) == (name == "create_endpoint")
    addons = {"add_plan": 2, "remove_plan": 0}.get(name, 1)
    if name != "remove_endpoint":
        usage = network.usage(ask.endpoint_id, timeout_s=TIMEOUT_S)
        assert len(usage.addons) == addons
        assert usage.status == ("suspended" if name == "suspend" else "active")


@pytest.mark.parametrize("name", CALLS)
def test_a_network_that_answers_nobody_is_a_trouble_of_the_port(
    far_side: FarSide, network: EsimNetwork, name: str
) -> None:
    ask = ready(network)
    far_side.break_down()

    with pytest.raises(MAY_RAISE[name]) as caught:
        CALLS[name](ask)

    # The text may reach a log, and so would the text of what caused it.
    assert ask.free_iccid not in str(caught.value)
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__ or caught.value.__context__ is None


@pytest.mark.parametrize("name", CALLS)
def test_a_call_without_time_ends_at_once(network: EsimNetwork, name: str) -> None:
    ask = ready(network, timeout_s=0.0)

    began = time.monotonic()
    with pytest.raises(MAY_RAISE[name]):
        CALLS[name](ask)

    assert time.monotonic() - began < PATIENCE_S


def test_a_creation_past_its_time_out_has_an_outcome_that_settles(
    far_side: FarSide, network: EsimNetwork
) -> None:
    iccid, began = a_free_esim(network), time.monotonic()
    with pytest.raises(OutcomeUnknown):
        network.create_endpoint(iccid, far_side.slow, BASE_PLAN, "link-1", timeout_s=SHORT_S)
    assert time.monotonic() - began < PATIENCE_S

    far_side.forward(network.settles_after)
    settled = network.find_endpoint(iccid, timeout_s=TIMEOUT_S)
    far_side.forward(timedelta(hours=1))

    assert network.find_endpoint(iccid, timeout_s=TIMEOUT_S) == settled
    if settled is not None:
        assert settled.reference in {"link-1", None}
        assert network.usage(settled.endpoint_id, timeout_s=TIMEOUT_S).status == "active"


def test_an_addition_past_its_time_out_has_an_outcome_that_settles(
    far_side: FarSide, network: EsimNetwork
) -> None:
    def listed() -> list[str]:
        usage = network.usage(endpoint_id, timeout_s=TIMEOUT_S)
        return [addon.addon_id for addon in usage.addons]

    endpoint_id = a_link(network)
    with pytest.raises(OutcomeUnknown):
        network.add_plan(endpoint_id, far_side.slow, "topup-1", timeout_s=SHORT_S)

    far_side.forward(network.settles_after)
    settled = listed()
    far_side.forward(timedelta(hours=1))

    assert listed() == settled
