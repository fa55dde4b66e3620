"""What stops an endpoint and what does not: suspensions, pauses of its device, clocks set back."""

from datetime import timedelta

import pytest

from tests.app.adapters.networks.simulated.links import Link, only
from tests.contracts.esim_networks import SimulatedSide


def test_a_pause_costs_the_time_of_the_pause_and_nothing_else(side: SimulatedSide) -> None:
    link = Link(side)
    straight = only(link.after(hours=20)).used_mb
    side.clock.now = link.made_at + timedelta(hours=10)
    for _ in range(2):
        link.suspend()
        side.clock.forward(hours=1)
    link.resume()
    link.resume()

    assert only(link.after(hours=22)).used_mb == pytest.approx(straight, abs=0.002)


def test_a_first_use_that_was_not_possible_happens_when_it_is(link: Link) -> None:
    link.suspend()
    usage = link.after(hours=2)
    assert usage.installed_at is not None
    assert usage.first_used_at is None
    assert link.status.last_seen_at is None
    assert only(usage).expires_at is None

    link.resume()

    assert link.now.first_used_at == link.made_at + timedelta(hours=2)
    assert only(link.after(hours=3)).used_mb > 0


def test_a_clock_that_was_set_back_takes_nothing_back(link: Link) -> None:
    link.after(hours=10)
    link.suspend()
    link.resume()
    used_mb = only(link.now).used_mb

    assert only(link.after(hours=9)).used_mb == used_mb
    link.suspend()
    link.resume()
    link.add()
    assert link.after(hours=10).addons[0].used_mb == used_mb
