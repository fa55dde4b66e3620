"""The login of BICS: one for all threads, again when it is refused, and not for ever."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from app.adapters.networks.bics.network import BicsNetwork
from app.adapters.networks.bics.session import Session
from app.adapters.remote.api import RemoteApi
from domain.links.network import Addon
from domain.provider_errors import OutcomeUnknown, Unavailable
from tests.contracts.esim_networks import OTHER_PLAN, TIMEOUT_S, a_link
from tests.support.providers import bics
from tests.support.providers.bics import BicsServer
from tests.support.providers.server import FaultKind


def test_threads_that_begin_together_or_whose_token_has_expired_log_in_once(
    network: BicsNetwork, server: BicsServer
) -> None:
    server.delay_s = 0.02
    for logins in (1, 2):
        with ThreadPoolExecutor(8) as pool:
            list(pool.map(lambda _: network.probe(timeout_s=TIMEOUT_S), range(16)))
        assert len(server.asked("log in")) == logins
        server.delay_s = 0.0
        server.forget_tokens()


@pytest.mark.parametrize("hidden", [True, False])
def test_a_token_that_has_expired_costs_one_login_and_the_change_is_made_once(
    network: BicsNetwork, server: BicsServer, *, hidden: bool
) -> None:
    endpoint_id = a_link(network)
    server.hides_401 = hidden
    server.forget_tokens()
    added = network.add_plan(endpoint_id, OTHER_PLAN, "topup-1", timeout_s=TIMEOUT_S)
    assert added != Addon(None)
    assert len(server.bought) == 2
    assert len(server.asked("log in")) == 2
    assert len(server.asked("plans")) == 2


def test_a_token_that_is_never_taken_ends_after_one_more_login(
    network: BicsNetwork, server: BicsServer
) -> None:
    endpoint_id = a_link(network)
    server.fault(FaultKind.UNAUTHORIZED, on="plans", times=9)
    with pytest.raises(Unavailable):
        network.add_plan(endpoint_id, OTHER_PLAN, "topup-1", timeout_s=TIMEOUT_S)
    assert len(server.asked("plans")) == 2
    assert len(server.bought) == 1


def test_a_wrong_password_is_sent_once_a_minute(server: BicsServer) -> None:
    api = RemoteApi("bics", server.url, clock=server.now)
    session = Session(api, bics.USERNAME, "a wrong one")
    network = BicsNetwork(session, server.now, bics.ROAMING_PROFILE, bics.APN_GROUP)
    for _ in range(3):
        with pytest.raises(Unavailable) as caught:
            network.probe(timeout_s=TIMEOUT_S)
        assert "a wrong one" not in str(caught.value)
    api.close()
    assert len(server.asked("log in")) == 1


@pytest.mark.parametrize("description", ["Request timed out", "System error", "In progress"])
def test_a_refusal_that_does_not_say_that_nothing_happened_is_an_unknown_outcome(
    network: BicsNetwork, server: BicsServer, description: str
) -> None:
    endpoint_id = a_link(network)
    refusal = bics.refused("9999", description)
    server.route_first("plans", "PATCH", "/endpoint", lambda _: refusal)
    with pytest.raises(OutcomeUnknown) as caught:
        network.add_plan(endpoint_id, OTHER_PLAN, "topup-1", timeout_s=TIMEOUT_S)
    assert description not in str(caught.value)
