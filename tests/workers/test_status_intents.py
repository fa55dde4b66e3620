"""A request that switches or ends a link may die at any point; the sweep asks what came of it."""

from functools import partial
from itertools import product
from typing import Any, Literal
from uuid import UUID

import pytest

from domain.links.network import LinkStatus, NoSuchEndpoint
from domain.links.requested import Target
from tests.workers.link_lab import Lab
from tests.workers.network_faults import FAULTS, KILLS, REFUSALS, UNKNOWN, arm
from workers.driving import CALL

Call = Literal["suspend", "resume"]
WAYS: list[tuple[Call, LinkStatus, Target]] = [
    ("suspend", "active", "suspended"),
    ("resume", "suspended", "active"),
]


def a_link(lab: Lab, status: LinkStatus) -> UUID:
    link = lab.create()
    if status != "active":
        lab.switch(link.id, "suspended")
    assert lab.link(link.id).status == status
    return link.id


def dead_switch(lab: Lab, call: Call, fault: str) -> UUID:
    """Let a request die in the midst of its call; return its link, whose intent is open."""
    way = next(each for each in WAYS if each[0] == call)
    link_id = a_link(lab, way[1])
    arm(lab.network, call, FAULTS[fault])
    assert not lab.live(lambda: lab.switch(link_id, way[2]))
    assert lab.link(link_id).open_call is not None
    return link_id


def dead_end(lab: Lab) -> UUID:
    """Let a request die that has just cancelled a link; return it."""
    link_id = a_link(lab, "active")
    arm(lab.network, "remove_endpoint", FAULTS["killed after"])
    assert not lab.live(lambda: lab.finish(link_id, "cancel"))
    return link_id


@pytest.mark.parametrize("fault", [*REFUSALS, *UNKNOWN, *KILLS])
@pytest.mark.parametrize(("call", "before", "target"), WAYS)
def test_the_log_ends_with_the_status_that_the_network_has(
    lab: Lab, call: Call, before: LinkStatus, target: Target, fault: str
) -> None:
    link_id = a_link(lab, before)
    arm(lab.network, call, FAULTS[fault])
    lab.live(lambda: lab.switch(link_id, target))
    assert (lab.link(link_id).status == target) == (fault == "unknown, done")  # It asks at once.
    lab.settle()
    was_done = FAULTS[fault].when == "after"
    assert lab.link(link_id).status == (target if was_done else before)
    assert lab.at_network(link_id) == lab.link(link_id).status


@pytest.mark.parametrize(
    ("call", "look"),
    [("suspend", ["usage"]), ("resume", ["usage"]), ("end", ["find_endpoint", "remove_endpoint"])],
)
def test_an_open_intent_is_left_alone_until_its_time_has_run_out(
    lab: Lab, call: Any, look: list[str]
) -> None:
    link_id = dead_end(lab) if call == "end" else dead_switch(lab, call, "killed after")
    lab.network.calls.clear()
    for _ in range(int(CALL.total_seconds())):
        lab.work(link_id)
        lab.sweep()
        assert lab.network.calls == []
        lab.clock.forward(seconds=1)
    lab.sweep()
    assert lab.network.calls == look
    assert lab.link(link_id).open_call is None


@pytest.mark.parametrize("call", ["suspend", "remove_endpoint"])
def test_a_read_records_nothing_while_a_call_may_still_have_an_effect(lab: Lab, call: str) -> None:
    link_id = a_link(lab, "active")
    lab.clock.forward(hours=1)  # It is used meanwhile, which the log does not know yet.
    arm(lab.network, call, FAULTS["killed before"])
    begin, what = (lab.switch, "suspended") if call == "suspend" else (lab.finish, "end")
    assert not lab.live(lambda: begin(link_id, what))  # type: ignore[operator]  # Either of them.

    def recorded() -> int:
        version, process = lab.link(link_id).version, lab.process
        process.link_readings.read(lab.link(link_id), process.cause(), live=True)
        process.background_reading._announce_end(link_id)  # noqa: SLF001  # What a tick does.
        return lab.link(link_id).version - version

    lab.clock.forward(seconds=(CALL + lab.network.settles_after).total_seconds() - 0.001)
    lab.sweep()
    assert recorded() == 0
    assert lab.link(link_id).open_call  # Nor is it given up.
    lab.clock.forward(seconds=0.001)
    assert recorded() > 0  # Whether or not the network can be reached to settle it.
    lab.settle()


# That there is no endpoint settles a status; no refusal says that a link has not ended.
@pytest.mark.parametrize(
    ("look", "fault"),
    [
        *product(["usage", "find_endpoint"], ["unavailable", "unknown, not done", "killed before"]),
        ("find_endpoint", "rejected"),
    ],
)
def test_an_intent_waits_for_a_network_that_cannot_be_reached(
    lab: Lab, fault: str, look: str
) -> None:
    link_id = dead_switch(lab, "suspend", "killed after") if look == "usage" else dead_end(lab)
    arm(lab.network, look, FAULTS[fault], times=1_000)
    for _ in range(9):
        lab.clock.forward(minutes=5)
        lab.sweep()
        assert lab.link(link_id).state == "active"
        assert lab.link(link_id).open_call
    lab.forget_faults()
    lab.settle()
    assert lab.link(link_id).state == ("suspended" if look == "usage" else "ended")


@pytest.mark.parametrize("call", ["suspend", "resume"])
def test_an_endpoint_that_has_gone_settles_the_intent_without_a_change(
    lab: Lab, call: Call
) -> None:
    link_id = dead_switch(lab, call, "killed before")
    before = lab.link(link_id).status
    lab.network.before("usage", NoSuchEndpoint())
    lab.clock.forward(seconds=5)
    lab.sweep()
    assert (lab.link(link_id).status, lab.link(link_id).open_call) == (before, None)


@pytest.mark.parametrize("after_s", [1, 4])
def test_a_switch_that_is_done_late_is_seen_when_its_intent_ends(lab: Lab, after_s: float) -> None:
    link_id = a_link(lab, "active")
    lab.late.later("suspend", after_s)
    lab.switch(link_id, "suspended")
    lab.settle()
    assert (lab.link(link_id).status, lab.at_network(link_id)) == ("suspended", "suspended")


def test_a_status_is_not_kept_by_a_look_before_the_call_had_its_effect(lab: Lab) -> None:
    link_id = a_link(lab, "active")
    lab.late.later("suspend", 17)
    lab.switch(link_id, "suspended")
    lab.clock.forward(seconds=10)
    lab.network.after("usage", lambda: lab.clock.forward(minutes=1))
    lab.work(link_id)
    assert lab.link(link_id).open_call is not None
    lab.settle()
    assert (lab.link(link_id).status, lab.at_network(link_id)) == ("suspended", "suspended")


@pytest.mark.parametrize("call", ["suspend", "remove_endpoint"])
def test_the_sweep_and_the_request_may_settle_one_intent_at_once(lab: Lab, call: str) -> None:
    link_id = a_link(lab, "active")
    lab.network.after(call, lambda: lab.sweep(after_s=5))
    if call == "suspend":
        lab.switch(link_id, "suspended")
    else:
        lab.finish(link_id, "cancel")
    state = "suspended" if call == "suspend" else "ended"
    assert (lab.link(link_id).state, lab.link(link_id).open_call) == (state, None)


def test_of_two_requests_with_the_same_intent_one_calls(lab: Lab) -> None:
    link_id, other = a_link(lab, "active"), lab.other_process()
    known = lab.link(link_id)
    first = partial(other.link_status.run, known, "suspended", other.cause())
    lab.commits.at(1, "before", first)  # Of the same moment, so of the same bytes.
    lab.switch(link_id, "suspended")
    assert lab.network.count("suspend") == 1
