"""A link: what its network charges for it, and which status it has at last."""

import pytest
from msgspec.structs import replace

from domain.cost import Cost
from domain.links.link import Link
from domain.links.network import Endpoint, LinkStatus
from tests.domain.build import cause
from tests.domain.build_links import (
    ACTIVE,
    ENDPOINT_ID,
    ICCID,
    LINK,
    LPA,
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
    story = Story(new_link(replace(bought("4.00"), cost=Cost(0, "EUR")))).given(reserved, begun())
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
