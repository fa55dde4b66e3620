"""A device behaves plausibly at every endpoint, and the same however often it is read."""

import csv
import json
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from app.adapters.lookups.mcc_mnc import SHIPPED
from app.adapters.networks.simulated.identifiers import Identifiers
from app.adapters.networks.simulated.network import NETWORKS, network_for
from app.adapters.networks.simulated.subscription import Habits, habits_of
from app.processes.demo import PLANS
from domain.links.network import ProviderPlan
from domain.regions import is_country

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


def test_every_serving_network_is_a_real_one() -> None:
    with SHIPPED.open(encoding="utf-8", newline="") as lines:
        names = {
            (row["country_code"], row["mcc"], row["mnc"]): [
                row["network"],
                *row["aliases"].split("|"),
            ]
            for row in csv.DictReader(lines)
        }
    told_apart = {country for country, _, _ in names}
    assert told_apart < NETWORKS.keys()
    for code, network in NETWORKS.items():
        assert is_country(code)
        assert (len(network.mcc), len(network.mnc) in {2, 3}, network.radio[1:]) == (3, True, "G")
        assert network.mcc != "001"  # Of test networks: nobody's answer to where a device is.
        if code in told_apart:
            assert network.operator in names[code, network.mcc, network.mnc]


def test_a_device_of_a_sample_plan_is_served_by_an_operator_of_it() -> None:
    plans = json.loads(PLANS.read_bytes())["plans"]
    for plan in (each for each in plans if not each["name"].startswith("Sandbox")):
        for place in plan["coverage"]:
            network = NETWORKS[place["country_code"]]
            types = {each["name"]: each["network_types"] for each in place["operators"]}
            assert network.radio in types[network.operator], plan["name"]


def served(number: int, *covered: Sequence[str], seed: str = "seed") -> str | None:
    found = network_for(Identifiers(seed), str(number), covered)
    return found and found.country_code


def test_devices_are_all_over_the_countries_of_a_plan_and_nowhere_else() -> None:
    countries = ("US", "CA", "MX")
    places = [served(number, countries) for number in range(200)]
    assert set(places) == set(countries)
    assert places == [served(number, countries[::-1]) for number in range(200)]
    assert places != [served(number, countries, seed="other") for number in range(200)]
    assert {served(number, ("US",)) for number in range(20)} == {"US"}


def test_without_a_country_a_plan_works_anywhere_and_without_a_plan_nowhere() -> None:
    assert len({served(number, ()) for number in range(100)}) > 50
    assert served(1) is None
    assert served(1, ("AQ",)) is None  # Nobody runs a network there.
