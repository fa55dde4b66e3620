"""How the device behind an endpoint behaves, by seed: its start, its traffic, its pauses."""

from datetime import datetime, timedelta
from typing import Final

import msgspec

from app.adapters.networks.simulated.identifiers import Identifiers
from domain.links.network import ProviderPlan

INSTALLED_S: Final = (30.0, 90.0)  # Counted from the creation of the endpoint.
FIRST_USED_S: Final = (60.0, 180.0)  # Counted likewise; never before the installation.
# The share of its validity after which the first plan is used up.
SHARE_OF_VALIDITY: Final = (0.2, 0.8)
CYCLE_S: Final = (1_200.0, 3_600.0)
# The first part of each cycle; in the rest the device is out of reach.
CONNECTED_SHARE: Final = 0.9


class Habits(msgspec.Struct, frozen=True):
    """What a device does unless it is stopped; its traffic is steady."""

    installed_at: datetime
    first_used_at: datetime
    mb_per_s: float
    cycle_s: float

    def is_connected(self, moment: datetime) -> bool:
        """Tell whether it has a connection, if allowed, at a moment after its first use."""
        return self._into_cycle_s(moment) < CONNECTED_SHARE * self.cycle_s

    def last_seen(self, moment: datetime) -> datetime:
        """Return when it last had a connection, seen from a moment after its first use."""
        out_of_reach_s = self._into_cycle_s(moment) - CONNECTED_SHARE * self.cycle_s
        return moment - timedelta(seconds=max(0.0, out_of_reach_s))

    def _into_cycle_s(self, moment: datetime) -> float:
        return (moment - self.first_used_at).total_seconds() % self.cycle_s


def habits_of(
    identifiers: Identifiers, endpoint_id: str, plan: ProviderPlan, since: datetime
) -> Habits:
    """Return the habits of the device of an endpoint that was created at `since`."""

    def choose(bounds: tuple[float, float], purpose: str) -> float:
        return identifiers.between(bounds, purpose, endpoint_id)

    installed_s = choose(INSTALLED_S, "installed")
    first_used_s = max(installed_s, choose(FIRST_USED_S, "first used"))
    validity_s = timedelta(days=plan.validity_days).total_seconds()
    return Habits(
        installed_at=since + timedelta(seconds=installed_s),
        first_used_at=since + timedelta(seconds=first_used_s),
        mb_per_s=plan.data_mb / (validity_s * choose(SHARE_OF_VALIDITY, "share of validity")),
        cycle_s=choose(CYCLE_S, "cycle"),
    )
