"""The plans of a link: which can be added, and the one operation that removes and adds."""

from collections.abc import Sequence
from typing import Any, Final

from flask import Response

from app.authorization import Caller
from app.http.age import wait_for
from app.http.blueprint import Blueprint
from app.http.commanding import IDEMPOTENCY_REPLAYED, REPLAYED, current_cause, replay_headers
from app.http.envelope import failure, success
from app.http.link_finding import find_link
from app.http.link_replies import ACTIVATION_ID, CHANGED, TOPUP_PLANS
from app.http.link_reply import reply_link
from app.http.operation import operation
from app.http.plan_replies import show_plan
from app.http.problems import problem_of
from app.http.request_context import container
from app.http.schemas.link_input import LinkPlansBody
from app.http.schemas.plan import NOT_A_COUNTRY, TopupQuery
from app.http.schemas.request_headers import IdempotencyHeader
from domain import errors
from domain.links.change_plans import NOT_THERE, BoundFailure, ChangeRequest
from domain.links.link import Link
from domain.links.offers import INCOMPATIBLE
from domain.links.waiting import SHARE
from projections.models.plans import PlanRow

plans_blueprint = Blueprint(
    "Plans of links",
    __name__,
    description="What runs on a link: plans are added for money and removed without.",
)

_BACK: Final = "4.50 USD has been refunded"
_STAYS: Final = "what was done before it stays"
_DONE: Final[dict[str, Any]] = {"refunded": "4.50", "removed": [str(ACTIVATION_ID)], "added": []}
CHANGE_REFUSALS: Final = (
    errors.NotFound(),
    errors.ValidationFailed({"remove.0": [NOT_THERE], "add.1": [INCOMPATIBLE]}),
    errors.IdempotencyKeyReused(),
    errors.BillingNotConfigured(),
    errors.RateLimited(SHARE),
    errors.InsufficientBalance(4_500_000, 1_000_000, "USD"),
    errors.IdempotencyInProgress(),
    errors.ProvisioningFailed(_BACK, _STAYS, **_DONE),
    errors.ProvisioningError(errors.LATE, _BACK, _STAYS, **_DONE),
)


@plans_blueprint.route("/v1/links/<identifier>/plans", methods=["PUT"])
@operation(scope="links", resource=find_link, refusals=CHANGE_REFUSALS, takes_body=True)
@plans_blueprint.arguments(LinkPlansBody, location="json")
@plans_blueprint.arguments(IdempotencyHeader, location="headers")
@plans_blueprint.replies(200, CHANGED, headers=IDEMPOTENCY_REPLAYED)
def change_link_plans(
    caller: Caller, link: Link, body: dict[str, Any], header: dict[str, Any]
) -> Response:
    """Remove plans from a link and add others.

    Everything is checked before anything is done. The removals come first and give no money back;
    all additions are charged at once and made in their order. At the first failure it ends: that
    addition and the later ones are refunded, and the reply says what has been done.
    """
    parts = container()
    wanted = ChangeRequest(
        caller.organization_id, link.id, body["remove"], body["add"], header.get("key")
    )
    try:
        change, replayed = parts.link_plans.run(wanted, current_cause())
    except BoundFailure as bound:
        return failure(problem_of(bound.refusal), REPLAYED)
    changed = parts.log.get(Link, link.id)
    return reply_link(changed, change.kept_micros, replay_headers(replayed))


@plans_blueprint.route("/v1/links/<identifier>/topup-plans", methods=["GET"])
@operation(
    scope="links",
    resource=find_link,
    refusals=[errors.NotFound(), errors.ValidationFailed({"country": [NOT_A_COUNTRY]})],
)
@plans_blueprint.arguments(TopupQuery, location="query")
@plans_blueprint.replies(200, TOPUP_PLANS)
def list_topup_plans(caller: Caller, link: Link, query: dict[str, Any]) -> Response:
    """List the plans that can be added to a link, those for where it works first.

    They run on its sponsor profile. Where that is not known, all that you can buy are listed. Those
    that share a country with a plan of the link come first, then the others, each by price.
    """
    parts = container()
    wait_for(parts, parts.plans.name)
    profile_id = link.sponsor_profile.id if link.sponsor_profile is not None else None
    with parts.views.reading() as connection:
        rows = parts.plans.compatible(
            connection, caller.organization_id, profile_id, query.get("country")
        )
    return success([show_plan(row) for row in _nearest_first(rows, link)])


def _nearest_first(rows: Sequence[PlanRow], link: Link) -> list[PlanRow]:
    """Order plans that come by name and id: what shares a country with the link, then by price."""
    here = {code for each in link.current_activations for code in each.plan.countries}

    def rank(row: PlanRow) -> tuple[bool, int]:
        is_elsewhere = here.isdisjoint(each.country_code for each in row.terms.coverage)
        return is_elsewhere, row.terms.retail_price_micros

    return sorted(rows, key=rank)
