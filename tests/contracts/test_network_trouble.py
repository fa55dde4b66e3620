"""The contract that every eSIM network signs: each call ends in time, or is a trouble."""

import time

import pytest

from domain.links.network import Capability, EsimNetwork
from domain.provider_errors import OutcomeUnknown, ProviderError, Rejected, Unavailable
from tests.contracts.esim_networks import FarSide, lacks
from tests.contracts.network_calls import READS_OF, Ask, ready
from tests.installation import PATIENCE_S

NEEDS: dict[str, Capability] = {
    "remove_plan": "remove_plan",
    "suspend": "suspend",
    "resume": "suspend",
}


def is_refused(network: EsimNetwork, call: str) -> bool:
    """Tell whether a call is one that the network cannot do; it says so at once."""
    return call in NEEDS and lacks(network, NEEDS[call])


def may_raise(network: EsimNetwork, call: str) -> tuple[type[ProviderError], ...]:
    if is_refused(network, call):
        return (Rejected,)
    return (Unavailable,) if call in READS_OF[network.shape] else (Unavailable, OutcomeUnknown)


def takes_nothing_back(ask: Ask, call: str) -> bool:
    """Tell whether a call is `take_back` of a network that cannot; it says so without asking."""
    if call != "take_back" or not lacks(ask.network, "cancel"):
        return False
    assert ask.call(call) is False
    return True


def test_a_network_that_answers_nobody_is_a_trouble_of_the_port(
    far_side: FarSide, network: EsimNetwork, call: str
) -> None:
    ask = ready(network)
    far_side.break_down()
    if takes_nothing_back(ask, call):
        return
    with pytest.raises(may_raise(network, call)) as caught:
        ask.call(call)
    # The text may reach a log, and so would the text of what caused it.
    assert ask.iccid not in str(caught.value)
    assert not ask.free_iccid or ask.free_iccid not in str(caught.value)
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__ or caught.value.__context__ is None


def test_a_call_without_time_ends_at_once(network: EsimNetwork, call: str) -> None:
    ask = ready(network, timeout_s=0.0)
    if takes_nothing_back(ask, call):
        return
    began = time.monotonic()
    with pytest.raises(may_raise(network, call)):
        ask.call(call)
    assert time.monotonic() - began < PATIENCE_S
