"""What may follow what: each event is refused in every stage that its table does not name."""

from collections.abc import Collection, Sequence
from types import NoneType, SimpleNamespace
from typing import Any
from uuid import uuid4

import pytest

from domain.aggregates import AGGREGATES
from domain.links.link import Link, Stage
from domain.links.lost_order import LostOrder
from domain.links.plan_change import Addition, Removal
from domain.log.aggregate import Event, Root
from tests.domain import build_links as steps
from tests.domain.build import cause
from tests.domain.build_links import ACTIVE, LinkStep
from tests.golden.files import events_of

VALUES: dict[str, tuple[Any, ...]] = {
    "stage": (*Stage,),
    "calling": (Link.StatusRequested, Link.EndRequested, None),
    "next_kind": (Removal, Addition, NoneType),
    **dict.fromkeys(("is_visible", "is_live", "is_answered", "is_settled"), (True, False)),
}
ANY = (None, uuid4())


@pytest.mark.parametrize("kind", [each for each in AGGREGATES if each.STAGES])
def test_an_event_is_refused_in_each_stage_that_the_table_does_not_name(kind: type[Root]) -> None:
    for facet, table in kind.STAGES.items():
        for event, may in table.items():
            assert event in {*events_of(kind)}, "a class that nobody records"
            allowed = [value in may for value in VALUES.get(facet, ANY)]
            assert {*allowed} == {True, False}, event
            for value, is_allowed in zip(VALUES.get(facet, ANY), allowed, strict=True):
                held = SimpleNamespace(STAGES={facet: table}, **{facet: value})
                assert Root.may_record(held, event) == is_allowed  # type: ignore[arg-type]  # For one.


def ending(link: Link) -> None:
    link.record(Link.EndRequested, cause(10), kind="end", until=steps.DEADLINE)


BEGUN = (steps.reserved, steps.begun())
FAILED = (*BEGUN, steps.failed(steps.SETTLED_AT))
HISTORIES: dict[str, tuple[LinkStep, ...]] = {
    "requested": (),
    "reserved": (steps.reserved,),
    "begun": BEGUN,
    "ordering": (steps.ordering(),),
    "active": ACTIVE,
    "switching": (*ACTIVE, steps.status_requested("suspended")),
    "changing": (*ACTIVE, steps.change_opened()),
    "ending": (*ACTIVE, ending),
    "ended": (*ACTIVE, lambda link: link.end([], cause(12))),
    "failed": FAILED,
    "removed": (*FAILED, steps.endpoint_removed),
    "released": (*FAILED, steps.esim_released),
    "failed empty-handed": (steps.failed(),),
}
LIVE = frozenset({"active", "switching", "changing", "ending"})
# Written down apart from the tables: after which of these histories an event may come.
ORDER: dict[type[Event], Collection[str]] = {
    Link.EsimReserved: {"requested"},
    Link.EndpointRequested: {"reserved", "begun"},
    Link.OrderRequested: {"requested", "ordering"},
    Link.OrderPlaced: {"ordering"},
    Link.EndpointCreated: {"begun"},
    Link.Activated: {"begun"},
    Link.ProvisioningFailed: {"requested", "reserved", "begun", "ordering"},
    **dict.fromkeys((Link.EndpointFound, Link.EndpointLeftOver), ("failed",)),
    Link.EndpointRemoved: {"failed"},
    Link.EsimReleased: {"failed", "removed"},
    Link.LpaStored: {*LIVE, "ended"},
    Link.Renamed: {*LIVE, "ended"},
    Link.HandoverSet: LIVE,
    Link.ChangeOpened: {"active", "switching"},
    **dict.fromkeys((Link.PlanAdded, Link.PlanRemoved, Link.ChangeClosed), ("changing",)),
    Link.StatusRequested: {"active", "switching", "changing"},
    **dict.fromkeys((Link.StatusKept, Link.Suspended, Link.Reactivated), ("switching",)),
    Link.EndRequested: {"active"},
    Link.EndKept: {"ending"},
    Link.Ended: {"active", "switching", "ending"},
    **dict.fromkeys((Link.StatusSeen, Link.Installed, Link.FirstUsed, Link.UsageReached), LIVE),
    **dict.fromkeys((Link.ExpiryNear, Link.PlanStarted, Link.PlanEnded), LIVE),
}


def test_the_order_of_the_events_of_a_link() -> None:
    assert {event for may in Link.STAGES.values() for event in may} == ORDER.keys()
    its = {LostOrder.Found, LostOrder.Settled, LostOrder.TakenBack, LostOrder.LeftOver}
    assert LostOrder.STAGES["found"].keys() == its
    for name, history in HISTORIES.items():
        came = {event for event in ORDER if not is_refused(history, event)}
        assert came == {event for event, after in ORDER.items() if name in after}, name


def is_refused(history: Sequence[LinkStep], event: type[Event]) -> bool:
    """Tell whether an event may not come now; one that may is refused for the facts it lacks."""
    link = steps.new_link()
    for step in history:
        step(link)
    try:
        link.record(event, cause(20))
    except AssertionError as error:
        return "is made of" not in str(error)
    return False
