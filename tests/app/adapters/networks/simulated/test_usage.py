"""The life of an endpoint as the clock goes on: installed, used, topped up, spent."""

from datetime import timedelta

import pytest

from domain.provider_errors import Rejected
from tests.app.adapters.networks.simulated.links import Link, only
from tests.contracts.esim_networks import OTHER_PLAN, PLAN, TIMEOUT_S, SimulatedSide


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
