"""A link: paid for with its eSIM, made by intents, failed with all its money back."""

from uuid import uuid4

import pytest
from msgspec.structs import replace

from domain.accounts.paid_price import Repayment
from domain.cost import Cost
from domain.ids import derive_id
from domain.links.link import Link, Stage, link_id
from domain.links.network import Endpoint
from tests.domain.build import ORGANIZATION, cause
from tests.domain.build_links import (
    ENDPOINT_ID,
    ICCID,
    LINK,
    LPA,
    SETTLED_AT,
    LinkStep,
    begun,
    bought,
    new_link,
    reserved,
)
from tests.story import Story, fact

REFUND = derive_id("refund", LINK)


def requested(price: str = "4.00", *steps: LinkStep) -> Story[Link]:
    return Story(new_link(bought(price))).given(*steps)


def test_each_attempt_of_each_key_of_each_organization_has_a_stream_of_its_own() -> None:
    ids = {
        link_id(organization, key, attempt)
        for organization in (ORGANIZATION, LINK)
        for key in ("key-1", "key-2")
        for attempt in (1, 2)
    }
    assert len(ids) == 8
    assert link_id(ORGANIZATION, "key-1", 1) in ids


def test_an_endpoint_of_somebody_else_is_never_taken_over() -> None:
    stranger = Endpoint(ENDPOINT_ID, ICCID, str(uuid4()))
    requested("4.00", reserved, begun()).when(
        lambda link: link.activate(stranger, LPA, cause(3), adopted=True)
    ).refused(AssertionError, stage=Stage.ENDPOINT_REQUESTED)


@pytest.mark.parametrize(
    ("price", "history", "refund", "iccid", "stage"),
    [
        pytest.param("4.00", (), None, None, Stage.ENDED, id="nothing was taken"),
        pytest.param("0", (reserved,), None, ICCID, Stage.FAILED, id="it was free"),
        pytest.param("4.00", (reserved,), 4_000_000, ICCID, Stage.FAILED, id="reserved"),
        pytest.param("4.00", (reserved, begun()), 4_000_000, ICCID, Stage.FAILED, id="begun"),
    ],
)
def test_a_failed_link_gives_back_exactly_what_was_taken(
    price: str, history: tuple[LinkStep, ...], refund: int | None, iccid: str | None, stage: Stage
) -> None:
    back = Repayment(refund, REFUND) if refund else None
    details = {"required": "4.00"}
    returned: list[Repayment | None] = []
    requested(price, *history).when(
        lambda link: returned.append(link.fail("NO_MONEY", details, SETTLED_AT, cause(4)))
    ).then(
        fact(
            Link.ProvisioningFailed,
            code="NO_MONEY",
            details=details,
            iccid=iccid,
            refund=back,
            settled_at=SETTLED_AT,
        ),
        stage=stage,
        is_visible=False,
    )
    assert returned == [back]


def activated_without_addon(link: Link) -> None:
    link.activate(Endpoint(ENDPOINT_ID, ICCID, str(LINK)), LPA, cause(3), adopted=False)


def test_a_cost_without_an_add_on_is_that_of_the_endpoint() -> None:
    link = new_link(replace(bought("4.00"), cost=Cost(0, "EUR")))
    Story(link).given(reserved, begun()).when(activated_without_addon).then(
        fact(Link.EndpointCreated),
        fact(Link.Activated, cost=Cost(0, "EUR", ENDPOINT_ID)),
    )
