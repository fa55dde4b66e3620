"""Whatever happens to a call of the network, a creation ends in a link or in a refund."""

from collections.abc import Mapping
from uuid import uuid4

import pytest

from domain.errors import IncompleteNetworkAnswer, ProvisioningError
from domain.links.link import Link, Stage
from domain.links.network import Endpoint
from tests.log_lines import records_of
from tests.workers.link_lab import Lab
from tests.workers.network_faults import FAULTS, KILLS, NO_ENDPOINT, REFUSALS, UNKNOWN, arm
from workers.driving import CALL

ERROR, FAILED = ProvisioningError.code, IncompleteNetworkAnswer.code

LOOKS: Mapping[str, str | None] = {
    **dict.fromkeys([*REFUSALS, *UNKNOWN], ERROR),
    **dict.fromkeys(KILLS),
}
# What a request comes to when one call meets a fault; None: it becomes a link.
OUTCOMES: Mapping[str, Mapping[str, str | None]] = {
    "available_esims": LOOKS,
    "lpa": LOOKS,
    "create_endpoint": {
        **dict.fromkeys(REFUSALS, ERROR),
        **dict.fromkeys(NO_ENDPOINT, FAILED),
        **dict.fromkeys([*UNKNOWN, *KILLS]),
    },
}
CASES = [(call, fault, code) for call, row in OUTCOMES.items() for fault, code in row.items()]


@pytest.mark.parametrize(("call", "fault", "code"), CASES)
def test_a_creation_whose_call_fails_ends_with_its_money_in_the_right_place(
    lab: Lab, call: str, fault: str, code: str | None
) -> None:
    arm(lab.network, call, FAULTS[fault])
    link = lab.create()
    lab.settle()
    link = lab.link(link.id)
    assert (link.failure.code if link.failure is not None else None) == code
    assert (link.stage is Stage.ACTIVE) == (code is None)


@pytest.mark.parametrize("times", [1, 6])
@pytest.mark.parametrize("fault", [*REFUSALS, *UNKNOWN, *KILLS])
def test_a_look_for_a_lost_endpoint_may_fail_as_often_as_it_will(
    lab: Lab, fault: str, times: int
) -> None:
    arm(lab.network, "find_endpoint", FAULTS[fault], times=times)
    link = lab.create("sandbox-lost-reply")
    lab.settle()
    assert (lab.link(link.id).stage is Stage.ACTIVE) == (times < 6)


def test_a_call_that_the_network_might_do_twice_is_made_once(lab: Lab) -> None:
    first = lab.create()
    lab.simulator.creates_once = lab.simulator.adds_once = False
    for call in ("create_endpoint", "add_plan"):
        arm(lab.network, call, FAULTS["unknown, not done"])
    link, change = lab.create(), lab.change(first.id, add=["t1"])
    lab.settle()
    assert lab.link(link.id).failure is not None
    assert lab.plan_change(change.id).failure is not None
    assert (lab.network.count("create_endpoint"), lab.network.count("add_plan")) == (2, 1)


def test_an_outcome_that_is_unknown_is_waited_for_before_the_call_is_made_again(lab: Lab) -> None:
    arm(lab.network, "create_endpoint", FAULTS["unknown, not done"])
    link = lab.create()
    for _ in range(5):
        assert lab.work(link.id).stage is Stage.ENDPOINT_REQUESTED
        assert lab.network.count("create_endpoint") == 1
        lab.clock.forward(seconds=1)
    lab.network.before("lpa", FAULTS["rejected"].error())
    assert lab.work(link.id).stage is Stage.ENDPOINT_REQUESTED, "it is not asked again at once"
    link = lab.work(link.id)
    assert (link.stage, link.attempts) == (Stage.ACTIVE, 2)
    assert lab.network.count("create_endpoint") == 2


@pytest.mark.parametrize("fault", [None, "unknown, done"])
def test_an_event_tells_of_an_endpoint_whose_reply_was_lost(lab: Lab, fault: str | None) -> None:
    if fault is not None:
        arm(lab.network, "create_endpoint", FAULTS[fault])
    link = lab.create()
    (created,) = lab.process.events(Link.EndpointCreated)
    assert (created.originator_id, created.adopted) == (link.id, fault is not None)


def test_a_second_call_that_is_refused_says_nothing_about_the_first_one(lab: Lab) -> None:
    arm(lab.network, "create_endpoint", FAULTS["rejected"])
    at_once = lab.create().failure
    assert at_once is not None
    assert at_once.settled_at is None
    lab.late.later("create_endpoint", 17)
    lab.network.before("create_endpoint", int, FAULTS["rejected"].error())
    link = lab.create()
    assert (link.stage, link.attempts) == (Stage.FAILED, 2)
    assert link.failure is not None
    assert link.failure.settled_at == lab.clock() + CALL + lab.network.settles_after
    lab.settle()
    assert lab.network.count("remove_endpoint") == 1


def test_an_endpoint_of_somebody_else_is_neither_adopted_nor_removed(lab: Lab) -> None:
    link_id = lab.request()
    plan = lab.link(link_id).requested.plan.at_provider
    foreign: list[Endpoint] = []

    def take_it() -> None:
        iccid = lab.link(link_id).iccid
        assert iccid is not None
        made = lab.simulator.create_endpoint(iccid, plan, "base-1", "somebody", timeout_s=1.0)
        foreign.append(made)

    lab.network.before("create_endpoint", take_it)
    link = lab.work(link_id)
    lab.clock.forward(minutes=1)
    assert lab.work(link_id).stage is Stage.FAILED  # Nobody else may have its eSIM meanwhile.
    assert link.failure is not None
    assert (link.failure.code, lab.network.count("remove_endpoint")) == (ERROR, 0)
    lab.simulator.remove_endpoint(foreign[0].endpoint_id, timeout_s=1.0)
    lab.settle()


def test_an_endpoint_that_is_found_under_another_reference_fails_the_link(lab: Lab) -> None:
    arm(lab.network, "create_endpoint", FAULTS["unknown, not done"])
    found = lab.simulator.find_endpoint
    foreign = Endpoint("ep-1", "8988000000000000000", str(uuid4()), "ad-1")
    lab.simulator.find_endpoint = lambda *_, **__: foreign
    link = lab.create()
    lab.simulator.find_endpoint = found
    assert link.failure is not None
    assert (link.failure.code, lab.network.count("remove_endpoint")) == (ERROR, 0)
    lab.settle()


def test_a_message_for_what_does_not_exist_changes_nothing(
    lab: Lab, caplog: pytest.LogCaptureFixture
) -> None:
    head = lab.process.log.head()
    lab.process.provisioning.work(uuid4())
    lab.process.plan_changes.work(uuid4())
    assert lab.process.log.head() == head
    lines = records_of(caplog, "workers.driving")
    assert [each.levelname for each in lines] == ["ERROR", "ERROR"]


def test_a_first_reading_that_is_not_kept_costs_nothing(
    lab: Lab, caplog: pytest.LogCaptureFixture
) -> None:
    def fails(*_: object) -> None:
        raise OSError

    lab.process.readings.save_usage = fails
    assert lab.create().stage is Stage.ACTIVE
    assert "was not kept" in caplog.text


def test_an_endpoint_whose_addon_is_not_told_is_asked_for_it(lab: Lab) -> None:
    lab.never_tell_addons()
    link = lab.create()
    assert link.addon_id is not None
    arm(lab.network, "usage", FAULTS["unavailable"])
    assert lab.create().addon_id is None
