"""A link: paid for with its eSIM, made by intents, failed with all its money back."""

from datetime import timedelta
from uuid import UUID, uuid4

import pytest
from msgspec.structs import replace

from domain.accounts.paid_price import PaidPrice, Repayment
from domain.cost import Cost
from domain.ids import derive_id
from domain.links.link import Link, Stage, link_id
from domain.links.network import Endpoint
from tests.domain.build import ORGANIZATION, cause
from tests.domain.build_links import (
    ACTIVE,
    DEADLINE,
    ENDPOINT_ID,
    ICCID,
    LINK,
    LPA,
    PROFILE,
    SETTLED_AT,
    LinkStep,
    activated,
    begun,
    bought,
    change_opened,
    endpoint_removed,
    esim_released,
    failed,
    new_link,
    reserved,
    seen,
    status_requested,
)
from tests.story import Story, fact

TRANSACTION = derive_id("transaction", LINK)
REFUND = derive_id("refund", LINK)
FIRST = derive_id("activation", LINK, 0)


def requested(price: str = "4.00", *steps: LinkStep) -> Story[Link]:
    return Story(new_link(bought(price))).given(*steps)


def test_a_requested_link_has_taken_nothing_and_is_not_visible() -> None:
    plan = bought("4.00")
    story = Story(new_link(plan)).then(
        fact(
            Link.Requested,
            organization_id=ORGANIZATION,
            name="Van 7",
            plan=plan,
            sponsor_profiles=[PROFILE],
            price=PaidPrice(4_000_000, "EUR", TRANSACTION),
            deadline=DEADLINE,
        ),
        id=LINK,
        organization_id=ORGANIZATION,
        stage=Stage.REQUESTED,
        iccid=None,
        attempts=0,
        is_visible=False,
        current_activations=[],
    )
    assert story.aggregate.requested.plan == plan


def test_a_link_of_a_free_plan_has_no_price() -> None:
    Story(new_link(bought("0"))).then(fact(Link.Requested, price=None))


def test_each_attempt_of_each_key_of_each_organization_has_a_stream_of_its_own() -> None:
    ids = {
        link_id(organization, key, attempt)
        for organization in (ORGANIZATION, LINK)
        for key in ("key-1", "key-2")
        for attempt in (1, 2)
    }
    assert len(ids) == 8
    assert link_id(ORGANIZATION, "key-1", 1) in ids


def test_a_reserved_link_holds_an_esim_under_its_sponsor_profile() -> None:
    requested().when(reserved).then(
        fact(Link.EsimReserved, organization_id=ORGANIZATION, iccid=ICCID, sponsor_profile=PROFILE),
        stage=Stage.RESERVED,
        iccid=ICCID,
        sponsor_profile=PROFILE,
    )


def test_an_esim_may_come_without_a_sponsor_profile() -> None:
    story = requested().when(lambda link: link.reserve_esim(ICCID, None, cause(1)))
    story.then(fact(Link.EsimReserved, sponsor_profile=None), sponsor_profile=None)


def test_every_intent_counts_as_an_attempt() -> None:
    story = requested("4.00", reserved)
    for attempt in (1, 2, 3):
        until = DEADLINE + timedelta(seconds=attempt)
        story.when(begun(until)).then(
            fact(Link.EndpointRequested, attempt=attempt, until=until),
            stage=Stage.ENDPOINT_REQUESTED,
            attempts=attempt,
        )


@pytest.mark.parametrize("adopted", [False, True])
def test_an_activated_link_says_all_of_itself(*, adopted: bool) -> None:
    plan = bought()
    endpoint = Endpoint(ENDPOINT_ID, ICCID, str(LINK), addon_id="addon-1")
    story = Story(new_link(plan)).given(reserved, begun())
    story.when(lambda link: link.activate(endpoint, LPA, cause(3), adopted=adopted)).then(
        fact(Link.EndpointCreated, endpoint_id=ENDPOINT_ID, addon_id="addon-1", adopted=adopted),
        fact(
            Link.Activated,
            organization_id=ORGANIZATION,
            endpoint_id=ENDPOINT_ID,
            addon_id="addon-1",
            iccid=ICCID,
            sponsor_profile=PROFILE,
            name="Van 7",
            plan=plan,
            activation_id=FIRST,
            lpa=LPA,
        ),
        stage=Stage.ACTIVE,
        status="active",
        activated_at=cause(3).at,
        is_visible=True,
        endpoint_id=ENDPOINT_ID,
        lpa=LPA,
    )
    (first,) = story.aggregate.current_activations
    assert (first.id, first.plan, first.bought_at) == (FIRST, plan, cause(3).at)
    assert (first.addon_id, first.removed_at) == ("addon-1", None)


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


def test_a_late_endpoint_is_removed_before_the_esim_is_free() -> None:
    story = requested("4.00", reserved, begun(), failed(SETTLED_AT))
    story.when(endpoint_removed).then(
        fact(Link.EndpointFound, endpoint_id=ENDPOINT_ID),
        fact(Link.EndpointRemoved, endpoint_id=ENDPOINT_ID),
        stage=Stage.ENDPOINT_REMOVED,
    )
    story.when(esim_released).then(fact(Link.EsimReleased, iccid=ICCID), stage=Stage.ENDED)


def test_an_esim_without_an_endpoint_is_free_at_once() -> None:
    story = requested("4.00", reserved, failed()).when(esim_released)
    story.then(fact(Link.EsimReleased, iccid=ICCID), stage=Stage.ENDED)


BEGUN: tuple[LinkStep, ...] = (reserved, begun())
FAILED: tuple[LinkStep, ...] = (*BEGUN, failed(SETTLED_AT))
HISTORIES: dict[str, tuple[LinkStep, ...]] = {
    "requested": (),
    "reserved": (reserved,),
    "begun": BEGUN,
    "active": ACTIVE,
    "failed": FAILED,
    "removed": (*FAILED, endpoint_removed),
    "released": (*FAILED, esim_released),
    "failed empty-handed": (failed(),),
}
ALLOWED: dict[str, tuple[LinkStep, set[str]]] = {
    "reserve": (reserved, {"requested"}),
    "begin": (begun(), {"reserved", "begun"}),
    "activate": (activated, {"begun"}),
    "fail": (failed(), {"requested", "reserved", "begun"}),
    "remove the endpoint": (endpoint_removed, {"failed"}),
    "release the eSIM": (esim_released, {"failed", "removed"}),
    "store the code": (lambda link: link.store_lpa(LPA, cause(9)), {"active"}),
    "open a change": (change_opened(), {"active"}),
    "ask for a status": (status_requested("suspended"), {"active"}),
    "note what is seen": (seen("suspended"), {"active"}),
}


@pytest.mark.parametrize("action", ALLOWED)
def test_a_step_is_taken_only_where_the_table_has_it(action: str) -> None:
    step, allowed = ALLOWED[action]
    for stage, history in HISTORIES.items():
        story = requested("4.00", *history)
        before, version = story.aggregate.stage, story.aggregate.version
        story.when(step)
        if stage not in allowed:
            story.refused(AssertionError, stage=before)
        else:
            story.given()
            assert story.aggregate.version > version, stage


def test_a_code_that_was_missing_is_kept() -> None:
    endpoint = Endpoint(ENDPOINT_ID, ICCID, str(LINK))
    story = requested("4.00", reserved, begun())
    story.given(lambda link: link.activate(endpoint, None, cause(3), adopted=False))
    assert story.aggregate.lpa is None
    story.when(lambda link: link.store_lpa(LPA, cause(4))).then(
        fact(Link.LpaStored, lpa=LPA), lpa=LPA
    )


def test_a_second_link_has_other_transactions() -> None:
    other = Link.request(
        UUID(int=LINK.int + 1),
        cause(),
        organization_id=ORGANIZATION,
        name=None,
        plan=bought(),
        sponsor_profiles=[],
        currency="EUR",
        deadline=DEADLINE,
    )
    assert other.requested.price is not None
    assert other.requested.price.transaction_id != TRANSACTION


def test_an_active_link_keeps_what_the_network_takes_for_its_plan() -> None:
    cost = Cost(2_100_000, "EUR")
    link = new_link(replace(bought("4.00"), cost=cost))
    Story(link).given(reserved, begun()).when(activated).then(
        fact(Link.EndpointCreated),
        fact(Link.Activated, cost=replace(cost, reference="addon-1")),
    )


def activated_without_addon(link: Link) -> None:
    link.activate(Endpoint(ENDPOINT_ID, ICCID, str(LINK)), LPA, cause(3), adopted=False)


def test_a_cost_without_an_add_on_is_that_of_the_endpoint() -> None:
    link = new_link(replace(bought("4.00"), cost=Cost(0, "EUR")))
    Story(link).given(reserved, begun()).when(activated_without_addon).then(
        fact(Link.EndpointCreated),
        fact(Link.Activated, cost=Cost(0, "EUR", ENDPOINT_ID)),
    )


def test_what_is_not_known_to_cost_anything_has_no_cost() -> None:
    requested("4.00", reserved, begun()).when(activated).then(
        fact(Link.EndpointCreated), fact(Link.Activated, cost=None)
    )
