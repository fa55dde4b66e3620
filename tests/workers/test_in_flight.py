"""What was in flight at an upgrade, or at the roll back after it, is ended by the other release."""

from datetime import datetime
from pathlib import Path

import msgspec
import pytest
from eventsourcing.persistence import StoredEvent

from domain.links.link import Link
from domain.links.plan_change import PlanChange
from domain.money import parse_amount
from tests.faulty_network import Killed
from tests.workers.link_lab import DEPOSIT, Lab

GOLDEN = Path(__file__).parents[1] / "golden/events"
STATES = {"link.status_requested": "suspended", "link.end_requested": "ended"}
WRITTEN_AT = datetime.fromisoformat("2026-03-01T12:30:15.123456Z")  # As all golden events.


def golden(topic: str) -> bytes:
    return (GOLDEN / f"{topic}.1.json").read_bytes()


def left_open(lab: Lab, work: Link | PlanChange, topic: str) -> None:
    """Append an intent as an earlier release wrote it; nobody who wrote it is alive."""
    ids = {"11111111-1111-4111-8111-111111111111": lab.organization_id}
    if isinstance(work, PlanChange):
        ids["55555555-5555-5555-8555-555555555555"] = work.link_id
    state = golden(topic)
    for there, here in ids.items():
        state = state.replace(there.encode(), str(here).encode())
    lab.process.log.insert([StoredEvent(work.id, work.version + 1, topic, state)])


@pytest.fixture
def link(lab: Lab) -> Link:
    lab.clock.forward(seconds=(WRITTEN_AT - lab.clock()).total_seconds() - 1)
    return lab.create()


@pytest.mark.parametrize("done", [True, False])
@pytest.mark.parametrize(("topic", "state"), STATES.items())
def test_a_request_in_flight_ends_as_the_network_has_it(
    lab: Lab, link: Link, topic: str, state: str, *, done: bool
) -> None:
    left_open(lab, link, topic)
    if done:
        call = lab.simulator.suspend if state == "suspended" else lab.simulator.remove_endpoint
        call(str(link.endpoint_id), timeout_s=1.0)
    lab.settle()
    assert lab.link(link.id).state == (state if done else "active")
    assert lab.process.log.history(link.id)[-1].request_id == "request-ä€😀"  # Of who asked for it.
    is_paid_back = lab.wallet.balance_micros == parse_amount(DEPOSIT)
    assert is_paid_back == (done and state == "ended")


@pytest.mark.parametrize("done", [True, False])
def test_a_removal_in_flight_at_its_deadline_is_told_as_it_is(
    lab: Lab, link: Link, *, done: bool
) -> None:
    [activation] = link.current_activations
    change_id = lab.request_change(link.id, remove=[activation.id])
    left_open(lab, lab.plan_change(change_id), "plan_change.plan_removal_started")
    if done:
        lab.simulator.remove_plan(str(link.endpoint_id), str(activation.addon_id), timeout_s=1.0)
    lab.settle()
    assert lab.plan_change(change_id).finished_at is not None
    assert lab.link(link.id).current_activations == ([] if done else [activation])


@pytest.mark.parametrize("topic", STATES)
def test_what_this_release_leaves_open_the_one_before_can_read(
    lab: Lab, link: Link, topic: str
) -> None:
    """After a roll back it finds the fields that it wrote itself."""
    lab.network.before("suspend", Killed())
    lab.network.before("remove_endpoint", Killed())
    kill = lab.switch if topic == "link.status_requested" else lab.finish
    assert not lab.live(lambda: kill(link.id, "suspended" if kill == lab.switch else "cancel"))  # type: ignore[operator]  # Either of the two.
    *_, newest = lab.process.log.recorder.select_events(link.id)
    assert newest.topic == topic
    written = msgspec.json.decode(newest.state)
    assert written.keys() == msgspec.json.decode(golden(topic)).keys()
    lab.settle()
