"""What a device does is plausible for every endpoint, and the same whenever one looks."""

import csv
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.providers.mcc_mnc import SHIPPED
from app.providers.simulated_network.device import Habits, habits_of
from app.providers.simulated_network.identifiers import Identifiers
from app.providers.simulated_network.serving import NETWORKS, network_for
from domain.network import ProviderPlan, ServingNetwork

START = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
MADE = Identifiers("seed")

endpoint_ids = st.integers(0, 10**9).map(lambda number: f"ep-{number}")
plans = st.builds(
    ProviderPlan, st.just("plan"), data_mb=st.integers(1, 10**6), validity_days=st.integers(1, 365)
)


def habits(name: str, plan: ProviderPlan | None = None) -> Habits:
    return habits_of(MADE, name, plan or ProviderPlan("plan", 1_000, 7), START)


@given(endpoint_ids, plans)
def test_a_device_is_installed_then_used_then_spends_its_plan(
    endpoint_id: str, plan: ProviderPlan
) -> None:
    device = habits(endpoint_id, plan)

    assert 30 <= (device.installed_at - START).total_seconds() <= 90
    assert 60 <= (device.first_used_at - START).total_seconds() <= 180
    assert device.installed_at <= device.first_used_at
    days = plan.data_mb / device.mb_per_s / 86_400
    assert 0.2 * plan.validity_days <= days * (1 + 1e-9)
    assert days * (1 - 1e-9) <= 0.8 * plan.validity_days


def test_devices_differ() -> None:
    rates = {habits(f"ep-{number}").mb_per_s for number in range(100)}

    assert len(rates) == 100
    assert max(rates) > 2.5 * min(rates)


def test_a_device_is_connected_most_of_the_time_but_not_always() -> None:
    device = habits("ep-1")
    moments = [device.first_used_at + timedelta(minutes=minute) for minute in range(5_000)]
    share = sum(map(device.is_connected, moments)) / len(moments)

    assert device.is_connected(device.first_used_at)
    assert share == pytest.approx(0.9, abs=0.02)


@given(endpoint_ids, st.timedeltas(timedelta(0), timedelta(days=30)))
def test_a_device_was_last_seen_when_it_was_last_connected(
    endpoint_id: str, passed: timedelta
) -> None:
    device = habits(endpoint_id)
    moment = device.first_used_at + passed

    seen = device.last_seen(moment)

    assert device.first_used_at <= seen <= moment
    assert (seen == moment) or not device.is_connected(moment)
    assert device.is_connected(seen - timedelta(milliseconds=1)) or seen == device.first_used_at
    assert moment - seen < timedelta(minutes=6, seconds=1)


@pytest.mark.parametrize("network", NETWORKS, ids=lambda network: network.country_code)
def test_every_serving_network_is_a_real_one(network: ServingNetwork) -> None:
    with SHIPPED.open(encoding="utf-8", newline="") as lines:
        operators = {
            (row["country_code"], row["mcc"], row["mnc"]): row["network"]
            for row in csv.DictReader(lines)
        }

    assert operators[network.country_code, network.mcc, network.mnc] == network.operator
    assert network.mcc != "001"


def test_devices_are_all_over_the_world_and_stay_where_they_are() -> None:
    served = [network_for(MADE, str(number)) for number in range(500)]

    assert set(served) == set(NETWORKS)
    assert served == [network_for(Identifiers("seed"), str(number)) for number in range(500)]
