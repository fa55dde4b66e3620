"""What of BICS is read how: the stock, life cycles, plans, and what may be missing."""

from datetime import timedelta
from typing import Any

import pytest

from app.adapters.networks.bics.network import BicsNetwork
from app.adapters.networks.bics.wire import ActivationCode, Statistics, status_of
from app.adapters.remote.exchange import Reply, decode
from domain.links.network import ActivationCode as ActivationCodeOf
from domain.links.network import NoSuchEndpoint
from domain.provider_errors import OutcomeUnknown, Unavailable
from tests.contracts.esim_networks import BASE_PLAN, PLAN, SPONSOR, TIMEOUT_S, a_free_esim, a_link
from tests.support.providers import bics
from tests.support.providers.bics import BicsServer


def free(network: BicsNetwork, page: int = 0) -> list[str]:
    return [*network.available_esims(PLAN, SPONSOR, "", page=page, timeout_s=TIMEOUT_S)]


def test_pages_whose_esims_are_in_use_are_passed_over_once(
    network: BicsNetwork, server: BicsServer
) -> None:
    in_use = list(server.sims.values())[:100]
    for sim in in_use:
        sim.endpoint_id = "of-another"
    first, *others = free(network)
    assert first > in_use[-1].iccid
    assert [request.query["page"] for request in server.asked("sims")] == ["1", "2"]
    assert network.skip_esim(first)
    assert free(network) == others, "it is not to be sold again"
    assert [request.query["page"] for request in server.asked("sims")] == ["1", "2", "2"]
    first, *_ = server.sims.values()
    for sim in server.sims.values():
        sim.endpoint_id = "of-another"
    assert free(network) == []
    first.endpoint_id = None
    assert free(network) == [first.iccid], "it is found when the rest is used up"


def test_a_plan_with_more_left_than_it_began_with_is_not_used(
    network: BicsNetwork, server: BicsServer
) -> None:
    endpoint_id = a_link(network)
    server.endpoints[endpoint_id].addons[0].left_mb += 500
    [addon] = network.usage(endpoint_id, timeout_s=TIMEOUT_S).addons
    assert (addon.used_mb, addon.remaining_mb) == (0.0, PLAN.data_mb + 500)


def test_an_endpoint_that_was_not_activated_is_activated_when_it_is_looked_up(
    network: BicsNetwork, server: BicsServer
) -> None:
    iccid = a_free_esim(network)
    server.activates = False
    with pytest.raises(OutcomeUnknown):
        network.create_endpoint(iccid, PLAN, BASE_PLAN, "link-1", timeout_s=TIMEOUT_S)
    for activates, status in ((False, "inactive"), (True, "active")):  # Refused, it stays so.
        server.activates = activates
        found = network.find_endpoint(iccid, timeout_s=TIMEOUT_S)
        assert found is not None
        assert network.usage(found.endpoint_id, timeout_s=TIMEOUT_S).status == status
    server.route_first("create", "POST", "/CreateEndPoint", lambda _: bics.done("4001"))
    with pytest.raises(OutcomeUnknown):  # Which tells no endpoint.
        network.create_endpoint(free(network)[0], PLAN, BASE_PLAN, "link-2", timeout_s=TIMEOUT_S)


CYCLES = "Active=active A=active Suspended=suspended SUSPEND=suspended S=suspended AI=inactive"
CYCLES += (
    " Pre-Active=inactive Active-Inventory=inactive Active-Test=inactive Hold=inactive =inactive"
)


def test_only_two_life_cycles_are_more_than_inactive() -> None:
    for life_cycle, _, status in (each.partition("=") for each in CYCLES.split()):
        assert status_of(life_cycle) == status


def test_where_a_profile_has_no_life_cycle_the_esim_tells_it(
    network: BicsNetwork, server: BicsServer
) -> None:
    endpoint_id = a_link(network)
    network.suspend(endpoint_id, timeout_s=TIMEOUT_S)
    handler = server.handler_of("profile")

    def answer(request: Any) -> Any:
        status, told, headers = handler(request)
        del told["Response"]["info"]["basicInfo"]["lifeCycle"]
        return status, told, headers

    server.route_first("profile", "GET", "/GetEndPointProfile", answer)
    assert network.usage(endpoint_id, timeout_s=TIMEOUT_S).status == "suspended"
    assert network.status(endpoint_id, timeout_s=TIMEOUT_S).status == "suspended"


def test_plans_that_are_used_up_have_the_traffic_since_they_began_which_is_read_once(
    network: BicsNetwork, server: BicsServer
) -> None:
    endpoint_id = a_link(network)
    for hours in (24, 48):
        server.forward(timedelta(hours=hours))
    usage = network.usage(endpoint_id, timeout_s=TIMEOUT_S)
    (addon,) = usage.addons
    assert (addon.used_mb, addon.remaining_mb) == (PLAN.data_mb, 0)
    assert usage.first_used_at is not None
    assert addon.expires_at is not None
    assert addon.expires_at - usage.first_used_at == timedelta(days=PLAN.validity_days)
    for number in range(3):
        network.add_plan(endpoint_id, PLAN, f"more-{number}", timeout_s=TIMEOUT_S)
        server.forward(timedelta(days=3))
    before = len(server.asked("statistics"))
    addons = network.usage(endpoint_id, timeout_s=TIMEOUT_S).addons
    assert len(server.asked("statistics")) == before + 1
    assert [each.remaining_mb for each in addons] == [0.0] * 4
    assert addons[-1].used_mb < addons[0].used_mb


@pytest.mark.parametrize("hour", [0, 12, 23])
def test_the_last_day_with_traffic_is_all_that_is_known_of_a_connection(
    network: BicsNetwork, server: BicsServer, hour: int
) -> None:
    """At no hour is a day on the calendar taken for a connection."""
    noon = server.now().replace(hour=12, minute=0, second=0, microsecond=0)
    server.offset += noon.replace(hour=hour, minute=55) - server.now()
    endpoint_id = a_link(network)
    assert network.status(endpoint_id, timeout_s=TIMEOUT_S).last_seen_at is None
    server.forward(timedelta(minutes=1))
    used_at = server.now()
    for later in (timedelta(0), timedelta(minutes=10), timedelta(days=2)):
        server.offset += later
        status = network.status(endpoint_id, timeout_s=TIMEOUT_S)
        assert (status.connected, status.network) == (False, None)
        assert status.last_seen_at == used_at.replace(hour=0, minute=0, second=0, microsecond=0)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("promotionalPlans", "plan", "planExpiryDate"), "2026-11-23"),
        (("benefitInfo", "benefit", "balance"), "much"),
        (("benefitInfo", "benefit", "balance"), "nan"),
        (("benefitInfo", "benefit", "balance"), -1),
    ],
)
def test_what_cannot_be_read_is_not_guessed(
    network: BicsNetwork, server: BicsServer, path: tuple[str, str, str], value: object
) -> None:
    endpoint_id = a_link(network)
    handler, (outer, inner, name) = server.handler_of("profile"), path

    def answer(request: Any) -> Any:
        status, told, headers = handler(request)
        told["Response"]["info"][outer][inner][0][name] = value
        return status, told, headers

    server.route_first("profile", "GET", "/GetEndPointProfile", answer)
    with pytest.raises(Unavailable) as caught:
        network.usage(endpoint_id, timeout_s=TIMEOUT_S)
    assert not isinstance(caught.value, NoSuchEndpoint)
    assert str(value) not in str(caught.value)


def test_statistics_as_a_public_client_keeps_them_and_an_activation_code_in_parts_are_read() -> (
    None
):
    code = ActivationCode("", "smdp.bics.example", "AB-1")
    assert code.lpa == "LPA:1$smdp.bics.example$AB-1"
    told = b"""{"Response": {"resultCode": "0", "resultParam": {"resultCode": "1339"},
        "responseParam": {"smsUsage": [{"totalCost": "3", "date": "26/04/2020"}],
        "dataUsage": [{"totalCost": "0.473", "date": "27/04/2020", "uplink": "2.02",
                       "downlink": "21.65", "totalVolume": "23.67"}],
        "dataTotalUsage": {"totalCost": "0.710", "totalVolume": "35.50"}}}}"""
    read = decode(Reply(200, {}, told), Statistics, "Response").response_param.data_usage
    assert [(day.date, day.total_volume) for day in read] == [("27/04/2020", 23.67)]


def test_a_late_copy_of_a_reply_is_not_taken_for_the_answer_about_another_esim(
    network: BicsNetwork, server: BicsServer
) -> None:
    """A look that shows nothing frees an eSIM, so it must be about that one."""
    endpoint_id = a_link(network)
    iccid, other = server.endpoints[endpoint_id].iccid, free(network)[0]
    assert iccid is not None
    server.repeats = True
    network.probe(timeout_s=TIMEOUT_S)
    for read in (network.lpa, network.find_endpoint):
        for asked in (other, iccid, iccid, other, iccid) * 2:
            try:
                told = read(asked, timeout_s=TIMEOUT_S)
            except Unavailable:
                continue
            if read == network.lpa:
                assert isinstance(told, ActivationCodeOf)
                assert told.lpa.endswith(f"${server.sims[asked].matching_id}")
            else:
                assert (told is None) is (asked == other)
