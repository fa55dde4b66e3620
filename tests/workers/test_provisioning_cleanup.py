"""What a failed creation leaves behind is found and removed, whatever happens to a call."""

from datetime import timedelta

import pytest

from app.books.postings import work_of
from domain.links.esim import Esim
from domain.links.link import Link, Stage
from tests.workers.link_checks import Books
from tests.workers.link_lab import Lab
from tests.workers.network_faults import FAULTS, arm
from workers.driving import CALL


def fail_late(lab: Lab) -> Link:
    """Fail a link at its deadline whose endpoint has come unseen."""
    link_id = lab.request()
    lab.network.after("create_endpoint", FAULTS["killed after"].error())
    lab.work(link_id)
    lab.clock.forward(seconds=15)
    lab.expire(link_id)
    return lab.link(link_id)


def esim_of(lab: Lab, link: Link) -> Esim:
    assert link.iccid is not None
    return lab.process.log.get(Esim, Esim.id_of(lab.network.name, link.iccid))


def test_an_endpoint_that_the_network_keeps_is_an_incident_and_asked_about_ever_less(
    lab: Lab,
) -> None:
    link = fail_late(lab)
    arm(lab.network, "remove_endpoint", FAULTS["rejected"], times=7)
    for _ in range(4 * 24 * 6):
        lab.clock.forward(minutes=10)
        lab.sweep()
    told = [e for e in Books(lab.process.log).events if isinstance(e, Link.EndpointLeftOver)]
    waited = [(each.until - each.timestamp) / timedelta(hours=1) for each in told]
    assert waited == [1, 2, 4, 8, 16, 24, 24]
    assert len(lab.process.log.get(Link, link.id).left_over) == 1
    (work,) = (work for each in told for work in work_of(each))
    assert work.reference == told[0].endpoint_id
    assert lab.network.count("remove_endpoint") == 8
    lab.settle()
    assert lab.link(link.id).stage is Stage.ENDED


@pytest.mark.parametrize("before_s", [0, 0.1, 2])
def test_an_esim_is_kept_from_others_until_nothing_can_come_of_it(
    lab: Lab, before_s: float
) -> None:
    settles_after = lab.network.settles_after
    settled_at = lab.clock() + CALL + settles_after  # A call may begin at the end of its intent.
    lab.late.later("create_endpoint", settles_after.total_seconds() - before_s)
    arm(lab.network, "find_endpoint", FAULTS["unavailable"])
    link = lab.create()
    lab.clock.forward(seconds=10)
    lab.expire(link.id)
    assert [each.until for each in lab.process.events(Esim.Quarantined)] == [settled_at]
    while lab.work(link.id).stage is Stage.FAILED:
        assert esim_of(lab, link).link_id == link.id
        lab.clock.forward(seconds=0.5)
    assert lab.clock() < settled_at
    assert lab.network.count("remove_endpoint") == 1


def test_a_network_that_stays_away_is_asked_until_it_comes_back(lab: Lab) -> None:
    link = fail_late(lab)
    arm(lab.network, "find_endpoint", FAULTS["unavailable"], times=1_000)
    for _ in range(60):
        lab.clock.forward(minutes=1)
        lab.sweep()
    asked = lab.network.count("find_endpoint")
    assert 50 <= asked <= 65  # Once per sweep at most, and no more often than twice a minute.
    assert lab.link(link.id).stage is Stage.FAILED
    lab.forget_faults()
    lab.clock.forward(minutes=1)
    lab.sweep()
    assert lab.link(link.id).stage is Stage.ENDED
