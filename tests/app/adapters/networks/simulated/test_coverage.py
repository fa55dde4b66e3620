"""A device keeps within the countries of its link's plans, and uses its data there."""

from datetime import datetime, timedelta

import pytest

from domain.links.network import NetworkStatus, ProviderPlan
from tests.contracts.esim_networks import TIMEOUT_S, SimulatedSide, a_link

CANADA = ProviderPlan("ca", data_mb=100, validity_days=2, countries=("CA",))
ALPS = ProviderPlan("alps", data_mb=1_000, validity_days=30, countries=("AT", "CH"))


class Trip:
    """A link on a first plan; each look is a minute or so after its device had a connection."""

    def __init__(self, side: SimulatedSide, plan: ProviderPlan) -> None:
        self._side = side
        self.network = side.connect()
        self.endpoint_id = a_link(self.network, plan)

    def after(self, **passed: float) -> NetworkStatus:
        """Go on, at least to the next moment with a connection within an hour, if there is one."""
        self._side.clock.forward(**passed)
        for _ in range(60):
            status = self.network.status(self.endpoint_id, timeout_s=TIMEOUT_S)
            if status.connected:
                break
            self._side.clock.forward(minutes=1)
        return status

    def place(self, **passed: float) -> str | None:
        network = self.after(**passed).network
        return network and network.country_code

    def add(self, plan: ProviderPlan) -> str:
        return self.network.add_plan(self.endpoint_id, plan, "topup", timeout_s=TIMEOUT_S).addon_id

    def remove(self, index: int) -> None:
        addon = self.network.usage(self.endpoint_id, timeout_s=TIMEOUT_S).addons[index]
        self.network.remove_plan(self.endpoint_id, addon.addon_id, timeout_s=TIMEOUT_S)

    def used(self) -> list[float]:
        usage = self.network.usage(self.endpoint_id, timeout_s=TIMEOUT_S)
        return [addon.used_mb for addon in usage.addons]

    @property
    def now(self) -> datetime:
        return self._side.clock()


@pytest.mark.parametrize("country", ["US", "CA", "FR", "XK"])
def test_a_plan_for_one_country_is_used_there(side: SimulatedSide, country: str) -> None:
    trip = Trip(side, ProviderPlan("one", data_mb=1_000, validity_days=7, countries=(country,)))
    assert {trip.place(hours=1) for _ in range(5)} == {country}
    assert trip.used()[0] > 0


def test_without_a_plan_a_device_is_nowhere(side: SimulatedSide) -> None:
    trip = Trip(side, ALPS)
    assert trip.place(hours=2) in ALPS.countries
    trip.remove(0)
    removed_at = trip.now
    bare = trip.after(hours=2)
    assert (bare.connected, bare.network) == (False, None)
    assert bare.last_seen_at is not None
    assert removed_at - timedelta(minutes=6) <= bare.last_seen_at <= removed_at


def test_when_its_plans_are_over_a_device_has_no_network(side: SimulatedSide) -> None:
    trip = Trip(side, CANADA)
    begun = trip.after(minutes=5).as_of
    over = trip.after(days=3)
    assert (over.connected, over.network) == (False, None)
    assert over.last_seen_at is not None
    assert begun < over.last_seen_at <= begun + timedelta(days=2)
    trip.add(ALPS)
    assert trip.place(minutes=1) in ALPS.countries
