"""What stops an endpoint and what does not: suspensions, pauses of its device, clocks set back."""

from datetime import timedelta

import pytest

from tests.app.adapters.networks.simulated.links import Link, only
from tests.contracts.esim_networks import TIMEOUT_S, SimulatedSide, a_link


def test_what_was_used_before_an_endpoint_was_suspended_is_kept(link: Link) -> None:
    link.after(hours=10)
    active = only(link.now)

    link.suspend()

    assert only(link.now) == active
    assert only(link.after(hours=20)) == active
    link.suspend()
    assert only(link.after(hours=20, minutes=1)) == active
    link.resume()
    assert only(link.now) == active
    assert only(link.after(hours=21)).used_mb > active.used_mb
    assert only(link.now).expires_at == active.expires_at


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


def test_a_short_pause_before_the_first_use_puts_nothing_off(side: SimulatedSide) -> None:
    link = Link(side)
    expected = link.after(minutes=5).first_used_at
    link.after(seconds=5)
    link.suspend()
    link.after(seconds=10)
    link.resume()

    assert link.after(minutes=5).first_used_at == expected


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


def test_a_connection_follows_the_first_use_and_the_status(link: Link) -> None:
    link.after(seconds=29)
    assert (link.status.connected, link.status.last_seen_at) == (False, None)

    first_used_at = link.after(minutes=5).first_used_at
    assert first_used_at is not None
    status = link.status
    assert status.connected
    assert status.network is not None
    assert status.last_seen_at == status.as_of == link.side.clock()

    link.suspend()
    suspended_at = link.side.clock()
    link.after(hours=5)
    assert not link.status.connected
    assert link.status.network is None
    assert link.status.last_seen_at == suspended_at


def test_no_device_is_connected_before_its_first_use(side: SimulatedSide) -> None:
    network = side.connect()
    for number in range(30):
        endpoint_id = a_link(network, reference=f"link-{number}")
        assert not network.status(endpoint_id, timeout_s=TIMEOUT_S).connected


def test_a_device_is_out_of_reach_now_and_then(link: Link) -> None:
    connected = []
    for minutes in range(5, 1_000, 5):
        link.after(minutes=minutes)
        connected.append(link.status.connected)

    assert 0.8 < sum(connected) / len(connected) < 1


def test_a_plan_that_has_expired_stays_listed_with_nothing_left(link: Link) -> None:
    link.after(hours=5)
    link.suspend()
    used_mb = only(link.now).used_mb

    usage = link.after(days=8)

    addon = only(usage)
    assert addon.expires_at is not None
    assert addon.expires_at < usage.as_of
    assert (addon.used_mb, addon.remaining_mb) == (used_mb, 0)
    assert used_mb > 0
