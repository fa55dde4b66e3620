"""The contract that every EsimNetwork signs: its stock, its endpoints and its activation codes."""

import re
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import timedelta
from threading import Barrier

import pytest

from domain.links.network import Endpoint, EsimNetwork, NoSuchEndpoint
from domain.provider_errors import OutcomeUnknown, Rejected
from tests.contracts.esim_networks import (
    BASE_PLAN,
    PLAN,
    SPONSOR,
    TIMEOUT_S,
    UNKNOWN_ENDPOINT,
    UNKNOWN_ICCID,
    FarSide,
    a_free_esim,
    a_link,
)
from tests.installation import PATIENCE_S

SHORT_S = 0.2
PAGES_BOUND = 1_000  # A stock that does not end by then is taken for one that never does.


def create(network: EsimNetwork, iccid: str, reference: str = "link-1") -> Endpoint:
    return network.create_endpoint(iccid, PLAN, BASE_PLAN, reference, timeout_s=TIMEOUT_S)


def free_iccids(
    network: EsimNetwork, page: int, product: str = "", sponsor: str | None = SPONSOR
) -> list[str]:
    return [*network.available_esims(PLAN, sponsor, product, page=page, timeout_s=TIMEOUT_S)]


def found_id(network: EsimNetwork, iccid: str) -> str | None:
    found = network.find_endpoint(iccid, timeout_s=TIMEOUT_S)
    return found and found.endpoint_id


def test_a_network_says_its_name_and_when_a_call_is_settled(network: EsimNetwork) -> None:
    assert re.fullmatch(r"[a-z]+", network.name)
    assert network.settles_after > timedelta(0)


def test_a_network_says_what_it_can_do_and_sell(network: EsimNetwork) -> None:
    assert network.shape in {"stock", "order"}
    assert network.capabilities <= {"suspend", "location", "remove_plan", "cancel"}
    assert network.balance(timeout_s=TIMEOUT_S) is None or network.remote
    assert len({each.provider_plan_id for each in network.supplied(timeout_s=TIMEOUT_S)}) == len(
        [*network.supplied(timeout_s=TIMEOUT_S)]
    )


def test_the_pages_of_the_stock_repeat_no_esim_and_come_to_an_end(network: EsimNetwork) -> None:
    seen: Counter[str] = Counter()
    for page in range(PAGES_BOUND):
        iccids = free_iccids(network, page)
        if not iccids:
            break
        seen.update(iccids)
    else:
        pytest.fail("the stock has no end")
    assert set(seen.values()) == {1}
    assert all(re.fullmatch(r"[0-9]{18,22}", iccid) for iccid in seen)
    assert free_iccids(network, page + 1) == []


def test_the_stock_is_filtered_by_sponsor_profile_and_product_and_looking_reserves_nothing(
    far_side: FarSide, network: EsimNetwork
) -> None:
    of_one = free_iccids(network, 0)
    assert of_one
    assert of_one == free_iccids(network, 0) == free_iccids(far_side.connect(), 0)
    assert {*of_one}.intersection(free_iccids(network, 0, sponsor=None)), "any eSIM will do"
    assert {*of_one}.isdisjoint(free_iccids(network, 0, sponsor="another"))
    assert free_iccids(network, 0, far_side.product)
    assert free_iccids(network, 0, "a product of nobody") == []


def test_an_esim_in_use_is_not_in_stock(far_side: FarSide, network: EsimNetwork) -> None:
    iccid = a_free_esim(network)
    create(network, iccid)
    assert iccid not in free_iccids(network, 0)
    assert iccid not in free_iccids(far_side.connect(), 0)


def test_a_new_endpoint_is_active_and_carries_its_plan(network: EsimNetwork) -> None:
    iccid = a_free_esim(network)
    made = create(network, iccid)
    assert made.endpoint_id
    assert made.iccid == iccid
    assert made.reference == "link-1"
    usage = network.usage(made.endpoint_id, timeout_s=TIMEOUT_S)
    assert usage.status == "active"
    (addon,) = usage.addons
    assert made.addon_id in {addon.addon_id, None}
    assert addon.provider_plan_id == PLAN.provider_plan_id
    assert (addon.used_mb, addon.remaining_mb, addon.expires_at) == (0, PLAN.data_mb, None)
    assert (usage.installed_at, usage.first_used_at) == (None, None)


def test_an_endpoint_is_found_by_every_process(far_side: FarSide, network: EsimNetwork) -> None:
    iccid = a_free_esim(network)
    assert network.find_endpoint(iccid, timeout_s=TIMEOUT_S) is None
    made = create(network, iccid)
    for each in (network, far_side.connect()):
        found = each.find_endpoint(iccid, timeout_s=TIMEOUT_S)
        assert found is not None
        assert (found.endpoint_id, found.iccid) == (made.endpoint_id, iccid)
        assert found.reference == "link-1"
        assert each.usage(found.endpoint_id, timeout_s=TIMEOUT_S).addons


def test_a_creation_repeated_is_the_same_endpoint(far_side: FarSide, network: EsimNetwork) -> None:
    iccid = a_free_esim(network)
    made = create(network, iccid)
    for each in (network, far_side.connect()):
        assert create(each, iccid).endpoint_id == made.endpoint_id
    assert len(network.usage(made.endpoint_id, timeout_s=TIMEOUT_S).addons) == 1


def test_an_esim_in_use_is_refused_to_another_reference(network: EsimNetwork) -> None:
    iccid = a_free_esim(network)
    made = create(network, iccid)
    with pytest.raises(Rejected) as caught:
        create(network, iccid, "link-2")
    assert iccid not in str(caught.value)
    assert found_id(network, iccid) == made.endpoint_id


def test_of_many_creations_on_one_esim_one_is_made(far_side: FarSide) -> None:
    processes = [far_side.connect() for _ in range(3)]
    iccid = a_free_esim(processes[0])
    together = Barrier(6)

    def attempt(number: int) -> str:
        together.wait(PATIENCE_S)
        try:
            return create(processes[number % 3], iccid, f"link-{number}").endpoint_id
        except Rejected:
            return "refused"

    with ThreadPoolExecutor(6) as pool:
        answers = Counter(pool.map(attempt, range(6)))
    assert answers == {"refused": 5, found_id(processes[0], iccid): 1}


def test_an_esim_that_nobody_made_has_no_endpoint(network: EsimNetwork) -> None:
    assert found_id(network, UNKNOWN_ICCID) is None
    with pytest.raises(Rejected):
        create(network, UNKNOWN_ICCID)
    with pytest.raises(Rejected):
        network.lpa(UNKNOWN_ICCID, timeout_s=TIMEOUT_S)


def test_a_removed_endpoint_is_gone_and_may_be_removed_again(
    far_side: FarSide, network: EsimNetwork
) -> None:
    iccid = a_free_esim(network)
    endpoint_id = create(network, iccid).endpoint_id
    (addon,) = network.usage(endpoint_id, timeout_s=TIMEOUT_S).addons
    for each in (network, network, far_side.connect()):
        each.remove_endpoint(endpoint_id, timeout_s=TIMEOUT_S)
        assert found_id(each, iccid) is None
        with pytest.raises(NoSuchEndpoint):
            each.usage(endpoint_id, timeout_s=TIMEOUT_S)
        each.remove_plan(endpoint_id, addon.addon_id, timeout_s=TIMEOUT_S)
    network.remove_endpoint(UNKNOWN_ENDPOINT, timeout_s=TIMEOUT_S)


def test_an_esim_that_was_given_back_can_be_used_again(network: EsimNetwork) -> None:
    iccid = a_free_esim(network)
    first = create(network, iccid)
    network.remove_endpoint(first.endpoint_id, timeout_s=TIMEOUT_S)
    for _ in range(2):
        network.release_esim(iccid, timeout_s=TIMEOUT_S)
    assert iccid in free_iccids(network, 0)
    second = create(network, iccid, "link-2")
    assert second.endpoint_id != first.endpoint_id
    assert found_id(network, iccid) == second.endpoint_id


def test_an_esim_with_an_endpoint_is_not_given_back(network: EsimNetwork) -> None:
    iccid = a_free_esim(network)
    made = create(network, iccid)
    with suppress(Rejected):
        network.release_esim(iccid, timeout_s=TIMEOUT_S)
    assert iccid not in free_iccids(network, 0)
    assert found_id(network, iccid) == made.endpoint_id


def test_an_esim_has_one_activation_code_for_ever(far_side: FarSide, network: EsimNetwork) -> None:
    iccid, other = free_iccids(network, 0)[:2]
    code = network.lpa(iccid, timeout_s=TIMEOUT_S)
    create(network, iccid)
    assert re.fullmatch(r"LPA:1\$[a-z0-9.-]+\$[0-9A-Z-]+", code.lpa)
    assert far_side.connect().lpa(iccid, timeout_s=TIMEOUT_S) == code
    assert network.lpa(other, timeout_s=TIMEOUT_S) != code


def test_threads_share_an_adapter(network: EsimNetwork) -> None:
    iccids = free_iccids(network, 0)[:12]
    with ThreadPoolExecutor(6) as pool:
        made = list(pool.map(lambda iccid: create(network, iccid, f"link-{iccid}"), iccids))
    assert [endpoint.iccid for endpoint in made] == iccids
    assert len({endpoint.endpoint_id for endpoint in made}) == len(iccids)


def test_a_reference_whose_endpoint_has_ended_makes_nothing_any_more(
    network: EsimNetwork,
) -> None:
    if not network.creates_once:
        pytest.skip("it keeps no reference; the saga repeats no creation that may still be done")
    iccid = a_free_esim(network)
    made = create(network, iccid)
    network.remove_endpoint(made.endpoint_id, timeout_s=TIMEOUT_S)
    network.release_esim(iccid, timeout_s=TIMEOUT_S)
    with pytest.raises(Rejected):
        create(network, iccid)
    assert network.find_endpoint(iccid, timeout_s=TIMEOUT_S) is None


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
