"""The data plans that the calling organization can buy."""

from typing import Any

from flask import Response

from app.http.catalogue.input import FILTERS, NOT_A_COUNTRY, PlanQuery
from app.http.catalogue.replies import (
    COVERAGE,
    PLAN,
    PLAN_PAGE,
    REGION_LIST,
    show_coverage,
    show_plan,
    show_regions,
)
from app.http.edge.input import Blueprint, parse_id
from app.http.edge.operation import operation
from app.http.edge.paging import offset_of, show_page
from app.http.edge.replies import ETAG, NOT_MODIFIED, conditional, wait_for
from app.http.edge.request import container
from app.security.authorization import Caller
from domain.errors import NotFound, ValidationFailed
from projections.models.plans import PlanFilter, PlanRow

blueprint = Blueprint(
    "Plans", __name__, description="Data plans: what they offer, what they cost, where they work."
)


@blueprint.route("/v1/plans", methods=["GET"])
@operation(scope="plans", refusals=[ValidationFailed({"country": [NOT_A_COUNTRY]})])
@blueprint.arguments(PlanQuery, location="query")
@blueprint.replies(
    200, PLAN_PAGE, headers=ETAG, leads_to=[("read_plan", "plan_id", "/data/data/0/id")]
)
@blueprint.doc(responses=NOT_MODIFIED)
def list_plans(caller: Caller, query: dict[str, Any]) -> Response:
    """List the plans that you can buy, by name.

    All filters can be combined. A page past the end is an empty list.
    """
    parts = container()
    wait_for(parts, parts.plans.name)
    wanted = PlanFilter(**{name: query.get(name) for name in FILTERS})
    with parts.views.reading() as connection:
        rows, total = parts.plans.page(
            connection,
            caller.organization_id,
            wanted,
            offset=offset_of(query),
            limit=query["per_page"],
        )
    now = parts.clock()
    return conditional(show_page([show_plan(row.at(now)) for row in rows], total, query))


@blueprint.route("/v1/plans/regions", methods=["GET"])
@operation(scope="plans")
@blueprint.replies(200, REGION_LIST, headers=ETAG)
@blueprint.doc(responses=NOT_MODIFIED)
def list_regions(_: Caller) -> Response:
    """List the regions and their countries.

    Each country belongs to exactly one region, by UN M49. A plan matches a region when it covers
    at least one of its countries.
    """
    return conditional(show_regions())


def _find(caller: Caller, plan_id: str) -> PlanRow:
    parts = container()
    wanted = parse_id(plan_id)
    wait_for(parts, parts.plans.name)
    row = parts.plans.get(parts.views, caller.organization_id, wanted)
    if row is None:
        raise NotFound
    return row.at(parts.clock())


@blueprint.route("/v1/plans/<plan_id>", methods=["GET"])
@operation(scope="plans", refusals=[NotFound()], resource=_find)
@blueprint.replies(
    200, PLAN, headers=ETAG, leads_to=[("read_plan_coverage", "plan_id", "/data/id")]
)
@blueprint.doc(responses=NOT_MODIFIED)
def read_plan(_: Caller, plan: PlanRow) -> Response:
    """Read one plan.

    404 for one that you cannot buy, for whatever reason.
    """
    return conditional(show_plan(plan))


@blueprint.route("/v1/plans/<plan_id>/coverage", methods=["GET"])
@operation(scope="plans", refusals=[NotFound()], resource=_find)
@blueprint.replies(200, COVERAGE, headers=ETAG)
@blueprint.doc(responses=NOT_MODIFIED)
def read_plan_coverage(_: Caller, plan: PlanRow) -> Response:
    """Read where a plan works.

    Every country with the networks that the plan can use there, and their generations.
    """
    return conditional(show_coverage(plan))
