"""What may follow what in a life cycle is what was recorded, and every other order is found."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from projections.audit.life import AFTERWARDS, Life
from tests.docs.verifier import verify
from tests.golden.files import event_classes

# By hand: for each way the events that may come next, with words for what stands there often.
STAGES = {
    "link": {
        "": "requested imported",
        "requested": "esim_reserved order_requested provisioning_failed",
        "requested provisioning_failed": "",
        "RESERVED": "endpoint_requested provisioning_failed",
        "RESERVED endpoint_requested": "endpoint_requested endpoint_created provisioning_failed",
        "RESERVED endpoint_requested endpoint_created": "activated",
        "RESERVED endpoint_requested provisioning_failed": "LATE endpoint_removed esim_released",
        "RESERVED provisioning_failed endpoint_found endpoint_removed": "esim_released",
        "RESERVED provisioning_failed esim_released": "",
        "ORDERING": "order_requested order_placed provisioning_failed",
        "ORDERING provisioning_failed": "",
        "ORDERING order_placed": "endpoint_created",
        "imported": "endpoint_created",
        "ACTIVE": "FREE LIVE",
        "ACTIVE change_opened": "plan_added plan_removed change_closed LIVE status_requested",
        "ACTIVE change_opened plan_added change_closed": "FREE LIVE",
        "ACTIVE end_requested": "end_kept ended LIVE",
        "ACTIVE end_requested end_kept": "FREE LIVE",
        "ACTIVE end_requested ended": "renamed",
        "ACTIVE ended": "renamed",
    },
    "esim": {
        "": "registered",
        "registered": "reserved",
        "registered reserved": "quarantined released",
        "registered reserved quarantined": "quarantined released",
        "registered reserved released": "reserved",
    },
    "lost_order": {
        "": "opened",
        "opened": "found settled",
        "opened found": "taken_back left_over",
        "opened found taken_back": "found settled",
        "opened found left_over": "found settled",
        "opened settled": "",
    },
    "plan_change": {
        "": "requested",
        "requested": "STARTED failed finished",
        "BEGUN": "STARTED plan_removal_done plan_addition_done failed finished",
        "BEGUN plan_removal_done": "STARTED failed finished",
        "requested failed": "finished",
        "BEGUN failed": "plan_removal_done finished",
        "BEGUN failed plan_removal_done": "finished",
        "requested failed_unsettled": "STARTED finished",
        "BEGUN failed_unsettled": "STARTED plan_removal_done finished",
        "requested failed_unsettled plan_removal_started": "STARTED plan_removal_done finished",
        "requested failed_unsettled plan_removal_started plan_removal_done": "finished",
        "requested finished": "",
    },
}
WORDS = {
    "LIVE": "expiry_near first_used installed lpa_stored plan_ended plan_left_over plan_started "
    "handover_set reactivated renamed status_kept status_seen suspended usage_reached",
    "FREE": "change_opened end_requested ended status_requested",
    "LATE": "endpoint_found endpoint_left_over",
    "ACTIVE": "imported endpoint_created activated",
    "RESERVED": "requested esim_reserved",
    "ORDERING": "requested order_requested",
    "BEGUN": "requested plan_removal_started",
    "STARTED": "plan_removal_started plan_addition_started",
}
NOW = "2026-03-01T12:30:15Z"
FACTS = {"timestamp": NOW, "until": NOW, "placed_at": NOW, "settled_at": None, "adopted": False}
FACTS |= {"organization_id": "o", "iccid": "i", "link_id": "l", "change_id": "c", "attempt": 1}
FACTS |= {"item": "p", "plan": {"provider_plan_id": "p"}, "activation_id": "a", "reason": "ended"}
FACTS |= {"removals": [], "additions": [{"activation_id": "a"}], "index": 0}


def words(text: str) -> list[str]:
    return " ".join(WORDS.get(each, each) for each in text.split()).split()


def event(noun: str, what: str) -> Any:
    facts = FACTS
    if what == "failed_unsettled":
        what, facts = "failed", {**FACTS, "settled_at": NOW}
    return verify.Event(1, "stream", 1, f"{noun}.{what}", json.dumps(facts))


def follows(noun: str, way: str, what: str) -> bool:
    life = Life()
    for each in words(way):
        assert "comes while" not in "".join(life.check(event(noun, each))), (way, each)
    return "comes while" not in "".join(life.check(event(noun, what)))


def kinds_of(noun: str) -> Iterator[str]:
    for topic in {each.TOPIC for each in event_classes()}:
        if topic.startswith(f"{noun}.") and not topic.endswith(AFTERWARDS):
            yield topic.partition(".")[2]


@pytest.mark.parametrize("noun", STAGES)
def test_an_event_comes_when_it_may_and_at_no_other_time(noun: str) -> None:
    kinds, first = {*kinds_of(noun)}, words(STAGES[noun][""])
    for way, after in STAGES[noun].items():
        may_come = kinds.difference(first if way else ())  # Versions say that a stream begins once.
        found = {what for what in may_come if follows(noun, way, what)}
        assert found == {*words(after)}, way
