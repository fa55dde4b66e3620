"""A link: what its network charges, its last status, its names, and how it ends for good."""

from dataclasses import replace
from datetime import timedelta

import pytest
from msgspec import structs

from domain.accounts.refund_by_hand import HandRefund
from domain.cost import Cost
from domain.errors import NotPossible, RateLimited
from domain.ids import derive_id
from domain.links.link import RENAMES_MAX, EndKind, Link
from domain.links.network import Endpoint, LinkStatus
from domain.personal import in_clear
from tests.domain.build import cause
from tests.domain.build_links import (
    ACTIVE,
    DEADLINE,
    ENDPOINT_ID,
    ICCID,
    LINK,
    LPA,
    LinkStep,
    begun,
    bought,
    new_link,
    reserved,
    status_requested,
    status_settled,
)
from tests.story import Story, fact


def test_a_cost_without_an_add_on_is_that_of_the_endpoint() -> None:
    endpoint = Endpoint(ENDPOINT_ID, ICCID, str(LINK))
    story = Story(new_link(structs.replace(bought("4.00"), cost=Cost(0, "EUR")))).given(
        reserved, begun()
    )
    story.when(lambda link: link.activate(endpoint, LPA, cause(3), adopted=False)).then(
        fact(Link.EndpointCreated),
        fact(Link.Activated, cost=Cost(0, "EUR", ENDPOINT_ID)),
    )


@pytest.mark.parametrize("has", ["active", "inactive"])
def test_a_status_that_the_network_did_not_take_on_is_what_it_has(has: LinkStatus) -> None:
    story = Story(new_link()).given(*ACTIVE, status_requested("suspended"))
    story.when(status_requested("suspended")).then(fact(Link.StatusRequested, attempt=2))
    story.when(status_settled(has))
    story.then(fact(Link.StatusKept, status=has), status=has, open_call=None)
    story.when(status_requested("suspended")).then(fact(Link.StatusRequested, attempt=1))


CHARGE, VAN = derive_id("transaction", LINK), in_clear("Van 7")


def a_link(*steps: LinkStep, price: str = "4.00") -> Story[Link]:
    return Story(new_link(bought(price))).given(*ACTIVE, *steps)


def end_requested(kind: EndKind) -> LinkStep:
    return lambda link: link.record(Link.EndRequested, cause(10), kind=kind, until=DEADLINE)


def ended(link: Link) -> None:
    link.end([], cause(12))


def test_the_same_name_again_is_no_event() -> None:
    a_link().when(lambda link: link.rename(VAN, cause(5))).then(name=VAN)


def test_a_link_is_renamed_only_so_often_a_day_so_that_its_stream_stays_short() -> None:
    link = a_link().aggregate
    for number in range(RENAMES_MAX):
        link.rename(in_clear(f"Van {number}"), cause(5))
    link.rename(in_clear(f"Van {RENAMES_MAX - 1}"), cause(6))
    with pytest.raises(RateLimited) as refused:
        link.rename(None, cause(7))
    at = cause(7).at
    assert refused.value.retry_after_s is not None
    tomorrow = at + timedelta(seconds=refused.value.retry_after_s)
    assert tomorrow.date() == at.date() + timedelta(days=1)
    link.rename(VAN, replace(cause(7), at=tomorrow))
    assert (link.name, link.renames) == (VAN, (tomorrow.date(), 1))


def test_nothing_is_refunded_by_hand_while_an_end_is_open() -> None:
    link = a_link(end_requested("end")).aggregate
    with pytest.raises(NotPossible, match="an end of the link is open"):
        link.refund_by_hand(HandRefund(CHARGE, "t-1", "a complaint", None, {}), cause(11))
