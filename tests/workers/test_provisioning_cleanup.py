"""What a failed creation leaves behind is found and removed, whatever happens to a call."""

from datetime import timedelta

import pytest

from app.books.postings import work_of
from domain.links.esim import Esim, esim_id
from domain.links.link import Link, Stage
from domain.money import parse_amount
from tests.workers.link_checks import Books, check
from tests.workers.link_lab import DEPOSIT, Lab
from tests.workers.network_faults import FAULTS, KILLS, REFUSALS, UNKNOWN, arm
from workers.links import CALL

pytestmark = pytest.mark.any_database

CALLS = ["find_endpoint", "remove_endpoint", "release_esim"]


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
    return lab.process.log.get(Esim, esim_id(lab.network.name, link.iccid))


@pytest.mark.slow
@pytest.mark.parametrize("fault", [*REFUSALS, *UNKNOWN, *KILLS])
@pytest.mark.parametrize("call", CALLS)
def test_a_late_endpoint_is_removed_whatever_becomes_of_a_call(
    lab: Lab, call: str, fault: str
) -> None:
    if (call, fault) == ("remove_endpoint", "rejected"):
        pytest.skip("a refusal is an incident, below")
    link = fail_late(lab)
    arm(lab.network, call, FAULTS[fault], times=2)
    lab.settle()
    assert lab.network.count(call) == 3  # A removal too, until its reply says that it is done.
    assert lab.link(link.id).stage is Stage.ENDED
    check(lab)


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
    check(lab)


@pytest.mark.parametrize("fault", [*REFUSALS, *UNKNOWN, *KILLS])
@pytest.mark.parametrize("call", ["find_endpoint", "release_esim"])
def test_an_esim_that_was_not_used_is_freed_whatever_becomes_of_a_call(
    lab: Lab, call: str, fault: str
) -> None:
    arm(lab.network, call, FAULTS[fault], times=3)
    link = lab.create("sandbox-no-endpoint")
    assert link.stage is Stage.FAILED
    lab.settle()
    assert lab.network.count("remove_endpoint") == 0
    check(lab)


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
    assert esim_of(lab, link).quarantined_until == settled_at
    while lab.work(link.id).stage is Stage.FAILED:
        assert esim_of(lab, link).link_id == link.id
        lab.clock.forward(seconds=0.5)
    assert lab.clock() < settled_at
    assert lab.network.count("remove_endpoint") == 1
    assert esim_of(lab, link).quarantined_until is None
    check(lab)


def test_an_esim_is_not_freed_by_a_look_before_the_endpoint_came(lab: Lab) -> None:
    """The look shows nothing; the network's time is over when the worker has its answer."""
    lab.late.later("create_endpoint", 17)
    arm(lab.network, "find_endpoint", FAULTS["unavailable"])
    link = lab.create()
    lab.clock.forward(seconds=10)
    lab.expire(link.id)
    lab.network.after("find_endpoint", lambda: lab.clock.forward(minutes=1))
    lab.work(link.id)
    assert lab.network.count("release_esim") == 0
    lab.settle()
    assert lab.network.count("remove_endpoint") == 1
    check(lab)


def test_an_esim_that_was_not_used_after_all_is_free_when_nothing_can_come_any_more(
    lab: Lab,
) -> None:
    arm(lab.network, "create_endpoint", FAULTS["killed before"])
    link_id = lab.request()
    lab.work(link_id)
    settled_at = lab.clock() + CALL + lab.network.settles_after
    lab.clock.forward(seconds=15)
    lab.expire(link_id)
    while lab.clock() < settled_at:
        assert lab.work(link_id).stage is Stage.FAILED
        lab.clock.forward(seconds=0.5)
    assert lab.work(link_id).stage is Stage.ENDED
    check(lab)


def test_an_esim_whose_outcome_is_known_is_freed_at_once(lab: Lab) -> None:
    link = lab.create("sandbox-provider-error")
    assert link.stage is Stage.ENDED
    assert esim_of(lab, link).link_id is None
    again = lab.create()
    assert again.stage is Stage.ACTIVE
    check(lab)


def test_the_money_is_back_long_before_the_esim_is_free(lab: Lab) -> None:
    link = fail_late(lab)
    assert link.stage is Stage.FAILED
    assert lab.wallet.balance_micros == parse_amount(DEPOSIT)
    assert esim_of(lab, link).link_id == link.id


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
    check(lab)


def test_a_slow_creation_is_removed_once_it_has_come(lab: Lab) -> None:
    link = lab.create("sandbox-slow")
    lab.clock.forward(seconds=15)
    lab.expire(link.id)
    assert lab.link(link.id).failure is not None
    lab.settle()
    assert lab.network.count("remove_endpoint") <= 1
    assert lab.clock() - link.created_on <= timedelta(minutes=2)
    check(lab)
