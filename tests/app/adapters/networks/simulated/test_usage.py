"""The life of an endpoint as the clock goes on: installed, used, topped up, paused, spent."""

from datetime import timedelta

import pytest

from domain.provider_errors import Rejected
from tests.app.adapters.networks.simulated.links import Link, only
from tests.contracts.esim_networks import OTHER_PLAN, PLAN, TIMEOUT_S, SimulatedSide, a_link
from tests.domain.asking import together


def test_looking_changes_nothing(link: Link, side: SimulatedSide) -> None:
    def rows() -> object:
        with side.database().reading() as connection:
            return connection.exec_driver_sql("SELECT * FROM simulated_endpoints").all()

    before = rows()
    link.after(days=2)
    assert link.status.as_of == side.clock()
    assert rows() == before


def test_a_removal_settles_what_was_used_and_the_next_plan_takes_over(link: Link) -> None:
    link.after(hours=5)
    link.add()
    first = link.now.addons[0]
    link.after(hours=10)
    removed_at = link.side.clock()
    link.network.remove_plan(link.endpoint_id, first.addon_id, timeout_s=TIMEOUT_S)
    assert only(link.now).used_mb == 0
    addon = only(link.after(hours=15))
    assert addon.expires_at == removed_at + timedelta(days=OTHER_PLAN.validity_days)
    assert addon.used_mb == pytest.approx(first.used_mb, rel=0.02)


def test_a_reference_stands_for_one_plan_and_for_no_second_life(link: Link) -> None:
    added = link.add()
    with pytest.raises(Rejected):
        link.add(PLAN)
    link.network.remove_plan(link.endpoint_id, added, timeout_s=TIMEOUT_S)
    with pytest.raises(Rejected):
        link.add()
    assert len(link.now.addons) == 1


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


def test_reads_never_see_half_of_a_change(side: SimulatedSide) -> None:
    """What is settled moves from the clock into the row; a look in between must not count both."""
    writer, reader = side.connect(), side.connect()
    endpoint_id = a_link(writer)
    side.clock.forward(hours=10)
    before = writer.usage(endpoint_id, timeout_s=TIMEOUT_S)

    def pause() -> None:
        for _ in range(40):
            writer.suspend(endpoint_id, timeout_s=TIMEOUT_S)
            writer.resume(endpoint_id, timeout_s=TIMEOUT_S)

    def look() -> None:
        for _ in range(150):
            assert reader.usage(endpoint_id, timeout_s=TIMEOUT_S).addons == before.addons

    together(pause, look, look)
