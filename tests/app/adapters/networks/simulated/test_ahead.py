"""A network whose time was moved: its links have aged, and it tells so by everybody's clock."""

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from app.adapters.networks.simulated.network import SimulatedNetwork
from domain.links.network import Endpoint, Usage
from tests.contracts.esim_networks import PLAN, TIMEOUT_S, SimulatedSide

HOUR = timedelta(hours=1)


class Moved:
    """A network, and by how much it is ahead."""

    def __init__(self, side: SimulatedSide) -> None:
        self.ahead = timedelta(0)
        self.clock = side.clock
        self.network = SimulatedNetwork(
            side.database(), side.clock, "seed", sandbox=True, wait=id, ahead=lambda *_: self.ahead
        )

    def create(self) -> Endpoint:
        [esim, *_] = self.network.available_esims(PLAN, None, "", page=0, timeout_s=TIMEOUT_S)
        return self.network.create_endpoint(
            esim.iccid, PLAN, "base", f"link-{esim.iccid}", timeout_s=TIMEOUT_S
        )

    def usage(self, made: Endpoint) -> Usage:
        return self.network.usage(made.endpoint_id, timeout_s=TIMEOUT_S)


@pytest.fixture
def moved(tmp_path: Path) -> Iterator[Moved]:
    side = SimulatedSide(tmp_path)
    yield Moved(side)
    side.close()


def test_a_plan_whose_end_was_passed_has_expired_and_not_before_it_was_bought(
    moved: Moved,
) -> None:
    made, created_at = moved.create(), moved.clock()
    moved.ahead = timedelta(days=PLAN.validity_days + 30)
    [addon] = moved.usage(made).addons
    assert (addon.remaining_mb, addon.expires_at) == (0.0, created_at)


def test_what_is_made_afterwards_begins_as_ever(moved: Moved) -> None:
    moved.ahead = 240 * HOUR
    made, created_at = moved.create(), moved.clock()
    fresh = moved.usage(made)
    assert (fresh.installed_at, fresh.addons[0].used_mb) == (None, 0.0)
    moved.clock.now += HOUR
    usage = moved.usage(made)
    assert usage.installed_at is not None
    assert timedelta(seconds=30) <= usage.installed_at - created_at <= timedelta(seconds=90)
    assert usage.addons[0].expires_at is not None
    validity = timedelta(days=PLAN.validity_days)
    assert usage.addons[0].expires_at - validity - created_at <= timedelta(seconds=180)
