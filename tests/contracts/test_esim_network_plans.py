"""The contract that every EsimNetwork signs: the plans of an endpoint, its usage and its status."""

import re
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from datetime import timedelta

import pytest

from domain.links.network import AddonUsage, EsimNetwork, NoSuchEndpoint
from domain.provider_errors import Rejected
from tests.contracts.esim_networks import (
    OTHER_PLAN,
    PLAN,
    TIMEOUT_S,
    UNKNOWN_ENDPOINT,
    FarSide,
    a_link,
    lacks,
)


def addons(network: EsimNetwork, endpoint_id: str) -> dict[str, AddonUsage]:
    usage = network.usage(endpoint_id, timeout_s=TIMEOUT_S)
    return {addon.addon_id: addon for addon in usage.addons}


def add(network: EsimNetwork, endpoint_id: str, reference: str) -> str:
    """Add a plan and return its id, as the network tells it at once or as it lists it."""
    before = addons(network, endpoint_id)
    made = network.add_plan(endpoint_id, OTHER_PLAN, reference, timeout_s=TIMEOUT_S)
    if made.addon_id is not None:
        return made.addon_id
    new = addons(network, endpoint_id).keys() - before
    return min(new)  # Several are added at once.


def refuses(network: EsimNetwork, call: Callable[..., object], *more: str) -> None:
    """What a network cannot do is refused, and leaves the endpoint as it is."""
    endpoint_id = a_link(network)
    before = addons(network, endpoint_id)
    with pytest.raises(Rejected):
        call(endpoint_id, *more, timeout_s=TIMEOUT_S)
    assert addons(network, endpoint_id) == before
    assert statuses(network, endpoint_id) == {"active"}


def statuses(network: EsimNetwork, endpoint_id: str) -> set[str]:
    """Return the result of both reads, which must agree."""
    usage = network.usage(endpoint_id, timeout_s=TIMEOUT_S)
    status = network.status(endpoint_id, timeout_s=TIMEOUT_S)
    return {usage.status, status.status}


def test_a_network_that_tells_what_an_endpoint_takes_tells_only_that(
    network: EsimNetwork,
) -> None:
    asked = ["refused-everywhere", OTHER_PLAN.provider_plan_id]
    taken = network.topups(a_link(network), asked, timeout_s=TIMEOUT_S)
    assert taken is None or {*taken} == {OTHER_PLAN.provider_plan_id}
    assert (taken is None) is (network.shape == "stock")


def test_an_added_plan_is_listed_at_once_under_a_new_id(
    far_side: FarSide, network: EsimNetwork
) -> None:
    endpoint_id = a_link(network)
    before = addons(network, endpoint_id)
    addon_id = add(network, endpoint_id, "topup-1")
    assert addon_id not in before
    for each in (network, far_side.connect()):
        listed = addons(each, endpoint_id)
        assert listed.keys() == {*before, addon_id}
        assert listed[addon_id].provider_plan_id == OTHER_PLAN.provider_plan_id
        assert listed[addon_id].remaining_mb == OTHER_PLAN.data_mb


def test_additions_at_once_are_all_made(far_side: FarSide, network: EsimNetwork) -> None:
    endpoint_id = a_link(network)
    processes = [far_side.connect() for _ in range(3)]

    def top_up(number: int) -> str:
        return add(processes[number % 3], endpoint_id, f"topup-{number}")

    with ThreadPoolExecutor(6) as pool:
        told = set(pool.map(top_up, range(12)))
    listed = addons(network, endpoint_id).keys()
    assert len(listed) == 13
    assert told < listed
    # Without a reference an addition is told apart only because a link has one change at a time.
    assert len(told) == 12 or not network.adds_once


def test_a_removed_plan_is_not_listed_and_may_be_removed_again(
    far_side: FarSide, network: EsimNetwork
) -> None:
    if lacks(network, "remove_plan"):
        refuses(network, network.remove_plan, "addon")
        return
    endpoint_id = a_link(network)
    far_side.install(endpoint_id)
    (first,) = addons(network, endpoint_id)
    second = add(network, endpoint_id, "topup-1")
    for each in (network, network, far_side.connect()):
        each.remove_plan(endpoint_id, first, timeout_s=TIMEOUT_S)
        assert list(addons(each, endpoint_id)) == [second]
    network.remove_plan(endpoint_id, "no-such-addon", timeout_s=TIMEOUT_S)
    network.remove_plan(endpoint_id, second, timeout_s=TIMEOUT_S)
    assert addons(network, endpoint_id) == {}
    assert [add(network, endpoint_id, "topup-2")] == [*addons(network, endpoint_id)]


def test_what_was_used_and_what_remains_are_the_plan(
    far_side: FarSide, network: EsimNetwork
) -> None:
    endpoint_id = a_link(network)
    for _ in range(10):
        usage = network.usage(endpoint_id, timeout_s=TIMEOUT_S)
        (addon,) = usage.addons
        assert addon.used_mb >= 0
        assert addon.used_mb + addon.remaining_mb == pytest.approx(PLAN.data_mb)
        assert (addon.expires_at is None) == (addon.used_mb == 0)
        if addon.expires_at is not None:
            assert usage.as_of < addon.expires_at
        far_side.forward(timedelta(hours=12))


def test_the_facts_of_an_endpoint_keep_their_forms(far_side: FarSide, network: EsimNetwork) -> None:
    endpoint_id = a_link(network)
    far_side.forward(timedelta(hours=1))
    usage = network.usage(endpoint_id, timeout_s=TIMEOUT_S)
    status = network.status(endpoint_id, timeout_s=TIMEOUT_S)
    assert 0 < network.background_reads_per_s <= 20
    moments = [usage.as_of, usage.installed_at, usage.first_used_at]
    moments += [status.as_of, status.last_seen_at]
    assert all(moment.utcoffset() == timedelta(0) for moment in moments if moment)
    assert usage.msisdn is None or re.fullmatch(r"\+[1-9][0-9]{1,14}", usage.msisdn)
    assert status.connected or status.network is None
    if status.network is not None:
        assert re.fullmatch(r"[A-Z]{2}", status.network.country_code)
        assert status.network.operator
        # What a network does not tell is None.
        assert re.fullmatch(r"[0-9]{3}", status.network.mcc or "000")
        assert re.fullmatch(r"[0-9]{2,3}", status.network.mnc or "00")
        assert status.network.radio in {None, "2G", "3G", "4G", "5G"}


def test_a_suspended_endpoint_is_seen_so_until_it_is_resumed(
    far_side: FarSide, network: EsimNetwork
) -> None:
    if lacks(network, "suspend"):
        refuses(network, network.suspend)
        refuses(network, network.resume)
        return
    endpoint_id, elsewhere = a_link(network), far_side.connect()
    for _ in range(2):
        network.suspend(endpoint_id, timeout_s=TIMEOUT_S)
        assert statuses(network, endpoint_id) == {"suspended"}
        assert statuses(elsewhere, endpoint_id) == {"suspended"}
    for _ in range(2):
        network.resume(endpoint_id, timeout_s=TIMEOUT_S)
        assert statuses(network, endpoint_id) == {"active"}
        assert statuses(elsewhere, endpoint_id) == {"active"}


def test_an_inactive_endpoint_is_resumed_too_or_stays_so(
    far_side: FarSide, network: EsimNetwork
) -> None:
    endpoint_id = a_link(network)
    far_side.deactivate(endpoint_id)
    assert statuses(network, endpoint_id) == {"inactive"}
    with nullcontext() if far_side.reactivates else pytest.raises(Rejected):
        network.resume(endpoint_id, timeout_s=TIMEOUT_S)
    expected = "active" if far_side.reactivates else "inactive"
    assert statuses(network, endpoint_id) == {expected}


def test_a_suspended_endpoint_has_no_connection_and_no_traffic(
    far_side: FarSide, network: EsimNetwork
) -> None:
    if lacks(network, "suspend"):
        return
    endpoint_id = a_link(network)
    far_side.forward(timedelta(hours=6))
    network.suspend(endpoint_id, timeout_s=TIMEOUT_S)
    before = network.usage(endpoint_id, timeout_s=TIMEOUT_S)
    far_side.forward(timedelta(hours=6))
    assert network.usage(endpoint_id, timeout_s=TIMEOUT_S).addons == before.addons
    assert not network.status(endpoint_id, timeout_s=TIMEOUT_S).connected


def test_plans_can_be_changed_while_an_endpoint_is_suspended(network: EsimNetwork) -> None:
    if lacks(network, "suspend", "remove_plan"):
        return
    endpoint_id = a_link(network)
    (first,) = addons(network, endpoint_id)
    network.suspend(endpoint_id, timeout_s=TIMEOUT_S)
    addon_id = add(network, endpoint_id, "topup-1")
    network.remove_plan(endpoint_id, first, timeout_s=TIMEOUT_S)
    assert list(addons(network, endpoint_id)) == [addon_id]
    assert statuses(network, endpoint_id) == {"suspended"}


def test_an_endpoint_that_nobody_made_is_told_so(network: EsimNetwork) -> None:
    calls = [network.usage, network.status]
    calls += [] if lacks(network, "suspend") else [network.suspend, network.resume]
    for call in calls:
        with pytest.raises(NoSuchEndpoint):
            call(UNKNOWN_ENDPOINT, timeout_s=TIMEOUT_S)
    with pytest.raises(NoSuchEndpoint):
        network.add_plan(UNKNOWN_ENDPOINT, OTHER_PLAN, "topup-1", timeout_s=TIMEOUT_S)
    if not lacks(network, "remove_plan"):
        network.remove_plan(UNKNOWN_ENDPOINT, "no-such-addon", timeout_s=TIMEOUT_S)
