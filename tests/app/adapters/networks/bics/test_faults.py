"""Every fault of a change at BICS: what the adapter says of it is true."""

import traceback
from collections.abc import Callable
from dataclasses import dataclass

import pytest

from app.adapters.networks.bics.network import BicsNetwork
from domain.links.network import Endpoint
from domain.provider_errors import OutcomeUnknown, Rejected, Unavailable
from tests.canaries import SOURCE, canaries_in
from tests.contracts.esim_networks import (
    BASE_PLAN,
    OTHER_PLAN,
    PLAN,
    TIMEOUT_S,
    a_free_esim,
    a_link,
)
from tests.installation import wait_until
from tests.support.providers import bics
from tests.support.providers.bics import BicsServer
from tests.support.providers.server import FaultKind

SHORT_S = 0.2
IN_THE_LONG_RUN = {  # Their like is always run.
    FaultKind.DRIBBLE,
    FaultKind.HUGE,
    FaultKind.HUGE_GZIP,
    FaultKind.HTML,
    FaultKind.UNAVAILABLE,
    FaultKind.DUPLICATE,
}
KINDS = [
    pytest.param(kind, marks=[pytest.mark.soak] if kind in IN_THE_LONG_RUN else [], id=kind.name)
    for kind in FaultKind
]
SLOW = {FaultKind.DELAY, FaultKind.LATE_REPLY, FaultKind.DRIBBLE}


@dataclass(frozen=True)
class Stage:
    """An account with a link on it, before a call."""

    network: BicsNetwork
    server: BicsServer
    endpoint_id: str
    addon_id: str
    free_iccid: str


@dataclass(frozen=True)
class Call:
    """A call, the request of it that fails, and whether its effect is there."""

    route: str
    make: Callable[[Stage, float], object]
    is_done: Callable[[Stage], bool]


def create(stage: Stage, timeout_s: float) -> Endpoint:
    return stage.network.create_endpoint(
        stage.free_iccid, PLAN, BASE_PLAN, "link-2", timeout_s=timeout_s
    )


def life_cycle(stage: Stage) -> str | None:
    endpoint = stage.server.endpoints.get(stage.endpoint_id)
    return endpoint and endpoint.life_cycle


CALLS = {
    "create": Call(
        "create",
        create,
        lambda stage: stage.server.sims[stage.free_iccid].endpoint_id is not None,
    ),
    "add a plan": Call(
        "plans",
        lambda stage, s: stage.network.add_plan(
            stage.endpoint_id, OTHER_PLAN, "topup", timeout_s=s
        ),
        lambda stage: len(stage.server.bought) > 1,
    ),
    "remove a plan": Call(
        "plans",
        lambda stage, s: stage.network.remove_plan(stage.endpoint_id, stage.addon_id, timeout_s=s),
        lambda stage: not stage.server.unpaid(),
    ),
    "suspend": Call(
        "life cycle",
        lambda stage, s: stage.network.suspend(stage.endpoint_id, timeout_s=s),
        lambda stage: life_cycle(stage) == "Suspended",
    ),
    "remove the endpoint": Call(
        "delink",
        lambda stage, s: stage.network.remove_endpoint(stage.endpoint_id, timeout_s=s),
        lambda stage: life_cycle(stage) is None,
    ),
    "delete the endpoint": Call(
        "delete",
        lambda stage, s: stage.network.remove_endpoint(stage.endpoint_id, timeout_s=s),
        lambda stage: life_cycle(stage) is None,
    ),
}


@pytest.fixture
def stage(network: BicsNetwork, server: BicsServer) -> Stage:
    endpoint_id = a_link(network)
    (addon,) = network.usage(endpoint_id, timeout_s=TIMEOUT_S).addons
    return Stage(network, server, endpoint_id, addon.addon_id, a_free_esim(network))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", CALLS)
def test_what_is_said_of_a_change_is_true_and_what_is_open_can_be_found_out(
    stage: Stage, name: str, kind: FaultKind
) -> None:
    call = CALLS[name]
    stage.server.fault(kind, on=call.route, headers={"Retry-After": "0"})

    try:
        call.make(stage, SHORT_S if kind in SLOW else TIMEOUT_S)
    except (Unavailable, Rejected) as error:
        assert not call.is_done(stage)
        told: Exception | None = error
    except OutcomeUnknown as error:
        told = error
    else:
        assert call.is_done(stage)
        told = None

    whole = "".join(traceback.format_exception(told)) if told is not None else ""
    said = SOURCE.sub("", whole)
    assert not canaries_in(said)
    assert not [each for each in (bics.PASSWORD, "eyJ.token") if each in said]
    stage.server.heal()
    if kind is FaultKind.DELAY and isinstance(told, OutcomeUnknown):  # It was sent in time.
        wait_until(lambda: name.startswith("remove the") or call.is_done(stage))
    if name == "create":
        found = stage.network.find_endpoint(stage.free_iccid, timeout_s=TIMEOUT_S)
        assert (found is not None) == call.is_done(stage)
        assert found is None or found.reference == "link-2"
    elif name != "add a plan":  # A repeat is safe.
        call.make(stage, TIMEOUT_S)
        assert call.is_done(stage)
    bought = 2 if name in {"create", "add a plan"} and call.is_done(stage) else 1
    # A proxy that sends an addition twice has bought two; the adapter cannot know.
    assert len(stage.server.bought) == bought + (
        name == "add a plan" and kind is FaultKind.EFFECT_TWICE
    )


def test_a_removal_that_was_sent_twice_is_unknown_where_nobody_can_look(stage: Stage) -> None:
    stage.server.fault(FaultKind.EFFECT_TWICE, on="plans")
    stage.server.fault(FaultKind.HTML, on="profile", times=9)

    with pytest.raises(OutcomeUnknown):
        stage.network.remove_plan(stage.endpoint_id, stage.addon_id, timeout_s=TIMEOUT_S)

    assert CALLS["remove a plan"].is_done(stage)
