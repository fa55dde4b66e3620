"""Links: eSIMs that are bought with a first plan, read, suspended and reactivated.

The plans of a link: which can be added, and the one operation that removes and adds.
"""

from collections.abc import Sequence
from typing import Any, Final

from flask import Response
from msgspec import UNSET
from msgspec.structs import asdict

from app.http.accounts.replies import show_transaction
from app.http.catalogue.input import NOT_A_COUNTRY, TopupQuery
from app.http.catalogue.replies import show_plan
from app.http.edge.input import NOT_A_FLAG, Blueprint, IdempotencyHeader, parse_id
from app.http.edge.media import PNG, SVG, also_sent_as, preferred
from app.http.edge.operation import operation
from app.http.edge.paging import offset_of, show_page
from app.http.edge.problem_docs import RETRY_AFTER
from app.http.edge.problems import problem_of
from app.http.edge.replies import (
    IDEMPOTENCY_REPLAYED,
    LOCATION,
    PLAN_ID,
    REPLAYED,
    ErrorDetail,
    failure,
    replay_headers,
    success,
    wait_for,
)
from app.http.edge.request import container, current_cause, reached
from app.http.links import qr, replies
from app.http.links.finding import find_link, link_data, list_items, reply_link
from app.http.links.input import (
    NO_CONTROLS,
    RESPOND_ASYNC,
    CreateHeaders,
    CreateQuery,
    HistoryQuery,
    LinkBody,
    LinkPlansBody,
    LinkQuery,
    NoBody,
    QrQuery,
    RenameBody,
    StatusQuery,
    is_waited_for,
)
from app.http.links.replies import (
    ACCEPTED,
    ACTIVATION_ID,
    CHANGED,
    CREATED,
    HISTORY,
    LINK,
    LINK_PAGE,
    NETWORK_STATUS,
    OUTCOME,
    QUOTE,
    STATUSES,
    TOPUP_PLANS,
    LinkOutcome,
    LinkQuote,
    NewLink,
    show_status,
)
from app.security.authorization import Caller
from domain import errors
from domain.catalogue.plan import SIMULATED
from domain.links.change_plans import NOT_THERE, ChangeRequest
from domain.links.create import LinkRequest, Quote
from domain.links.ending import UNCHANGED
from domain.links.failing import BoundFailure, refusal_of_link
from domain.links.link import RENAMED, Link
from domain.links.offers import INCOMPATIBLE, UNKNOWN
from domain.links.status import Target
from domain.links.waiting import SHARE
from domain.money import format_amount
from projections.models.plans import PlanRow

blueprint = Blueprint(
    "Links",
    __name__,
    description="eSIMs of your organization. A link is named by its id or by its ICCID.",
)

CREATE_REFUSALS: Final = (
    errors.ValidationFailed({"plan_id": [UNKNOWN]}),
    errors.IdempotencyKeyReused(),
    errors.BillingNotConfigured(),
    errors.RateLimited(SHARE),
    errors.ConfigError(),
    errors.SpendingLimit(4_500_000, 49_000_000, 50_000_000, "USD"),
    errors.InsufficientBalance(4_500_000, 1_000_000, "USD"),
    errors.IdempotencyInProgress(),
    errors.IncompleteNetworkAnswer("4.50 USD has been refunded", refunded="4.50"),
    errors.ProvisioningError(errors.NO_ESIM, "nothing was taken", refunded="0.00"),
)
_TO_LINK: Final = (
    ("read_link", "identifier", "/data/id"),
    ("read_network_status", "identifier", "/data/id"),
    ("list_topup_plans", "identifier", "/data/id"),
    ("change_link_plans", "identifier", "/data/id"),
    ("list_link_history", "identifier", "/data/id"),
    ("suspend_link", "identifier", "/data/id"),
    ("rename_link", "identifier", "/data/id"),
    ("cancel_link", "identifier", "/data/id"),
    ("end_link", "identifier", "/data/id"),
    ("read_link_qr", "identifier", "/data/id"),
)
# The failures of a link whose client did not wait: a repeated request with its key gets them.
_OF_A_REPLAY: Final = {each: {"headers": IDEMPOTENCY_REPLAYED} for each in (402, 403, 500, 502)}
POLL_S: Final = "1"
PREFERENCE_APPLIED: Final = {
    "Preference-Applied": {
        "description": "The preference that was followed (RFC 7240).",
        "schema": {"type": "string", "enum": [RESPOND_ASYNC]},
    }
}
_SWITCH_REFUSALS: Final = (
    errors.NotFound(),
    errors.NotSupportedByNetwork(),
    errors.LinkEnded(),
    errors.LinkBusy(),
    errors.ValidationFailed({"status": ["Unknown field."]}),
    errors.RateLimited(SHARE),
    errors.ProvisioningError(errors.UNREACHABLE, "the status is unchanged"),
)
_END_REFUSALS: Final = (
    errors.NotFound(),
    errors.LinkBusy(),
    errors.RateLimited(SHARE),
    errors.ProvisioningError(errors.UNREACHABLE, UNCHANGED),
)


@blueprint.route("/v1/links", methods=["GET"])
@operation(
    scope="links",
    refusals=[errors.ValidationFailed({"status": [f"Must be one of: {', '.join(STATUSES)}."]})],
)
@blueprint.arguments(LinkQuery, location="query")
@blueprint.replies(200, LINK_PAGE, leads_to=[("read_link", "identifier", "/data/data/0/id")])
def list_links(caller: Caller, query: dict[str, Any]) -> Response:
    """List your links, newest first.

    Status and usage are the last known; read a link to have the network asked. A page past the end
    is an empty list.
    """
    items, total = list_items(container(), caller.organization_id, query)
    return success(show_page(items, total, query))


@blueprint.route("/v1/links", methods=["POST"])
@operation(scope="links", refusals=CREATE_REFUSALS, takes_body=True, buys=True)
@blueprint.arguments(CreateQuery, location="query")
@blueprint.arguments(
    LinkBody, location="json", example={"plan_id": str(PLAN_ID), "name": CREATED.data.name}
)
@blueprint.arguments(CreateHeaders, location="headers")
@blueprint.doc(responses=_OF_A_REPLAY)
@blueprint.replies(200, QUOTE)
@blueprint.replies(
    202,
    ACCEPTED,
    headers=LOCATION | RETRY_AFTER | PREFERENCE_APPLIED | IDEMPOTENCY_REPLAYED,
    leads_to=[("read_link_request", "request_id", "/data/id")],
)
@blueprint.replies(201, CREATED, headers=LOCATION | IDEMPOTENCY_REPLAYED, leads_to=_TO_LINK)
def create_link(
    caller: Caller, query: dict[str, Any], body: dict[str, Any], header: dict[str, Any]
) -> Response:
    """Create a link with its first plan.

    The price of the plan is charged when an eSIM has been found, and is back before a failure is
    told. The reply comes when the link is active: allow for half a minute. If it is lost, send the
    request again with the same `Idempotency-Key`. With `Prefer: respond-async` the reply comes at
    once. With `dry_run` everything is checked, the price is told, and nothing is made.
    """
    create, cause = container().link_create, current_cause()
    wanted = LinkRequest(
        caller.organization_id,
        body["plan_id"],
        body["name"],
        header.get("key"),
        waits=is_waited_for(header.get("prefer", "")),
    )
    if query["dry_run"]:
        return success(_show_quote(create.quote(wanted, cause)))
    try:
        link, replayed = create.run(wanted, cause)
    except BoundFailure as bound:
        return failure(problem_of(bound.refusal), REPLAYED)
    headers = replay_headers(replayed)
    base = reached(container().settings.base)
    if not link.is_visible:
        headers = {"Preference-Applied": RESPOND_ASYNC, "Retry-After": POLL_S, **headers}
        headers["Location"] = f"{base}/v1/link-requests/{link.id}"
        return success(replies.LinkRequest(id=link.id, status="pending"), 202, headers=headers)
    return success(_new(link), 201, headers={"Location": f"{base}/v1/links/{link.id}", **headers})


def _show_quote(quote: Quote) -> LinkQuote:
    left_micros = quote.balance_micros
    return LinkQuote(
        plan_id=quote.plan.plan_id,
        plan_name=quote.plan.name,
        price=format_amount(quote.plan.price_micros),
        currency=container().settings.currency,
        balance_after=None if left_micros is None else format_amount(left_micros),
    )


def _new(link: Link) -> NewLink:
    price, parts = link.requested.price, container()
    shown = link_data(parts.link_readings.read(link, current_cause(), live=False))
    return NewLink(
        **asdict(shown),
        activation_url=shown.apple_activation_url,
        amount_charged=format_amount(price.amount_micros if price is not None else 0),
        currency=parts.settings.currency,
    )


def _find_request(caller: Caller, request_id: str) -> Link:
    """Return a link that the caller has asked for, also one that is pending or has failed."""
    link = container().log.find(Link, parse_id(request_id))
    if link is None or link.organization_id != caller.organization_id:
        raise errors.NotFound
    return link


@blueprint.route("/v1/link-requests/<request_id>", methods=["GET"])
@operation(scope="links", resource=_find_request, refusals=[errors.NotFound()])
@blueprint.replies(200, OUTCOME, headers=RETRY_AFTER)
def read_link_request(_: Caller, link: Link) -> Response:
    """Read what has become of a request for a link.

    `Retry-After` stands on it while the link is being made. After a failure the error is the one
    that a request that waits is told, and `refunded` is what has come back.
    """
    shown = LinkOutcome(id=link.id, status="pending", link=None, error=None, refunded=None)
    if link.is_visible:
        shown.status, shown.link = "active", _new(link)
    elif link.failure is not None:
        problem, refund = problem_of(refusal_of_link(link)), link.failure.refund
        details = problem.details_sent() or UNSET
        shown.status, shown.error = "failed", ErrorDetail(problem.code, problem.message, details)
        shown.refunded = format_amount(refund.amount_micros if refund is not None else 0)
    return success(shown, headers={"Retry-After": POLL_S} if shown.status == "pending" else {})


@blueprint.route("/v1/links/<identifier>", methods=["GET"])
@operation(scope="links", resource=find_link, refusals=[errors.NotFound()])
@blueprint.replies(200, LINK)
def read_link(_: Caller, link: Link) -> Response:
    """Read a link, its plans and its usage.

    The network is asked. Where it cannot be reached, what it said last is shown with its
    `usage_as_of`, and `meta.stale` is true.
    """
    return reply_link(link)


@blueprint.route("/v1/links/<identifier>", methods=["PATCH"])
@operation(
    scope="links",
    resource=find_link,
    refusals=[
        errors.NotFound(),
        errors.ValidationFailed({"name": [NO_CONTROLS]}),
        errors.RateLimited(RENAMED, retry_after_s=3_600),
    ],
    takes_body=True,
)
@blueprint.arguments(RenameBody, location="json", example={"name": "Van 13"})
@blueprint.replies(200, LINK)
def rename_link(_: Caller, link: Link, body: dict[str, Any]) -> Response:
    """Give a link another name, or none.

    An ended one can be renamed too.
    """
    return reply_link(container().link_readings.rename(link, body["name"], current_cause()))


@blueprint.route("/v1/links/<identifier>", methods=["DELETE"])
@operation(scope="links", resource=find_link, refusals=_END_REFUSALS)
@blueprint.replies(200, LINK)
def end_link(_: Caller, link: Link) -> Response:
    """End a link for good.

    Its network stops it, and removes from it what it can. No money goes back, and no monthly fee
    counts it from the next month on. An ended link stays in the list and keeps its history; to end
    it again changes nothing.
    """
    return reply_link(container().link_ending.end(link, current_cause()))


@blueprint.route("/v1/links/<identifier>/cancel", methods=["POST"])
@operation(
    scope="links",
    resource=find_link,
    refusals=[
        *_END_REFUSALS,
        errors.NotSupportedByNetwork(),
        errors.LinkEnded(),
        errors.LinkInUse(),
        errors.CancelWindowOver(),
        errors.ValidationFailed({"reason": ["Unknown field."]}),
        errors.NetworkUnavailable(),
    ],
    takes_body=True,
)
@blueprint.arguments(NoBody, location="json", required=False)
@blueprint.replies(200, LINK)
def cancel_link(_: Caller, link: Link, __: dict[str, Any]) -> Response:
    """Cancel a link that was never installed nor used, and get its money back.

    Its network is asked at this moment. What is left of its activation and of each top-up is
    refunded in the commit that ends it. After a 502 it is settled by itself within minutes: read
    the link. To cancel it again changes nothing.
    """
    return reply_link(container().link_ending.cancel(link, current_cause()))


@blueprint.route("/v1/links/<identifier>/suspend", methods=["POST"])
@operation(scope="links", resource=find_link, refusals=_SWITCH_REFUSALS, takes_body=True)
@blueprint.arguments(NoBody, location="json", required=False)
@blueprint.replies(200, LINK)
def suspend_link(_: Caller, link: Link, __: dict[str, Any]) -> Response:
    """Stop the traffic of a link.

    Its plans go on to expire. One that is suspended already is left as it is.
    """
    return _switch(link, "suspended")


@blueprint.route("/v1/links/<identifier>/reactivate", methods=["POST"])
@operation(scope="links", resource=find_link, refusals=_SWITCH_REFUSALS, takes_body=True)
@blueprint.arguments(NoBody, location="json", required=False)
@blueprint.replies(200, LINK)
def reactivate_link(_: Caller, link: Link, __: dict[str, Any]) -> Response:
    """Let a link carry traffic again.

    This is for one that is suspended or inactive. An active one is left as it is.
    """
    return _switch(link, "active")


@blueprint.route("/v1/links/<identifier>/qr", methods=["GET"])
@operation(
    scope="links",
    resource=find_link,
    refusals=[
        errors.NotFound(),
        errors.LinkEnded(),
        errors.ValidationFailed({"size": ["Must be a whole number from 128 to 2048."]}),
        errors.NotAcceptable(SVG, PNG),
        errors.NetworkUnavailable(),
    ],
)
@blueprint.arguments(QrQuery, location="query")
@blueprint.doc(responses={200: {"description": "The image."}})
@also_sent_as({SVG: "<svg …", PNG: "PNG"})
def read_link_qr(_: Caller, link: Link, query: dict[str, Any]) -> Response:
    """Read the activation code of a link as a QR code, which a phone scans to install it.

    It is an SVG, or with `Accept: image/png` a PNG. Whoever has it can install the eSIM.
    """
    media = preferred(PNG, first=SVG)
    link.require_live()
    code = container().link_readings.activation_code(link, current_cause())
    draw = qr.as_png if media == PNG else qr.as_svg
    headers = {"Cache-Control": "private", "Vary": "Accept, Authorization, X-Organization-Id"}
    return Response(draw(code, query["size"]), headers=headers, content_type=media)


@blueprint.route("/v1/links/<identifier>/history", methods=["GET"])
@operation(
    scope="links",
    resource=find_link,
    refusals=[
        errors.NotFound(),
        errors.ValidationFailed({"per_page": ["Must be a whole number from 1 to 100."]}),
    ],
)
@blueprint.arguments(HistoryQuery, location="query")
@blueprint.replies(200, HISTORY)
def list_link_history(caller: Caller, link: Link, query: dict[str, Any]) -> Response:
    """List the transactions that concern a link, newest first.

    These are its activation, its top-ups, their refunds, and the monthly fees that count it.
    """
    parts = container()
    wait_for(parts, parts.transactions.name)
    with parts.views.reading() as connection:
        entries, total = parts.transactions.link_history(
            connection,
            caller.organization_id,
            link.id,
            offset=offset_of(query),
            limit=query["per_page"],
        )
    shown = [show_transaction(entry) for entry in entries]
    return success(show_page(shown, total, query))


@blueprint.route("/v1/links/<identifier>/network-status", methods=["GET"])
@operation(
    scope="links",
    resource=find_link,
    refusals=[
        errors.NotFound(),
        errors.ValidationFailed({"live": [NOT_A_FLAG]}),
        errors.RateLimited(SHARE),
        errors.NetworkUnavailable(),
    ],
)
@blueprint.arguments(StatusQuery, location="query")
@blueprint.replies(200, NETWORK_STATUS)
def read_network_status(_: Caller, link: Link, query: dict[str, Any]) -> Response:
    """Read whether and where a link is connected.

    What the network has said within the last minute is given again; with `live` it is always asked.
    Where it cannot be reached, what it said last is shown, and `meta.stale` is true.
    """
    found = container().link_readings.status(link, live=query["live"])
    shown = show_status(link, found.status, cached=found.is_stored)
    return success(shown, stale=found.is_stale)


def _switch(link: Link, target: Target) -> Response:
    return reply_link(container().link_status.run(link, target, current_cause()))


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
    errors.NotSupportedByNetwork(),
    errors.LinkEnded(),
    errors.LinkBusy(),
    errors.ValidationFailed({"remove.0": [NOT_THERE], "add.1": [INCOMPATIBLE]}),
    errors.IdempotencyKeyReused(),
    errors.BillingNotConfigured(),
    errors.RateLimited(SHARE),
    errors.SpendingLimit(4_500_000, 49_000_000, 50_000_000, "USD"),
    errors.InsufficientBalance(4_500_000, 1_000_000, "USD"),
    errors.IdempotencyInProgress(),
    errors.IncompleteNetworkAnswer(_BACK, _STAYS, **_DONE),
    errors.ProvisioningError(errors.LATE, _BACK, _STAYS, **_DONE),
)


@plans_blueprint.route("/v1/links/<identifier>/plans", methods=["PUT"])
@operation(scope="links", resource=find_link, refusals=CHANGE_REFUSALS, takes_body=True, buys=True)
@plans_blueprint.arguments(
    LinkPlansBody,
    location="json",
    example={"remove": [str(ACTIVATION_ID)], "add": [str(PLAN_ID)]},
)
@plans_blueprint.arguments(IdempotencyHeader, location="headers")
@plans_blueprint.doc(responses={502: {"headers": IDEMPOTENCY_REPLAYED}})
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
        caller.organization_id,
        link.id,
        body["remove"],
        body["add"],
        header.get("key"),
        link.network,
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

    They are of its network and run on its sponsor profile. Where the profile is not known, all of
    the network that you can buy are listed. Those that share a country with a plan of the link come
    first, then the others, each by price. For a link that has ended there are none.
    """
    parts = container()
    if link.ended is not None:
        return success([])
    wait_for(parts, parts.plans.name)
    profile_id = link.sponsor_profile.id if link.sponsor_profile is not None else None
    with parts.views.reading() as connection:
        rows = parts.plans.compatible(
            connection, caller.organization_id, profile_id, query.get("country")
        )
    offered, now = None if parts.drains.has(link.network) else link.network, parts.clock()
    rows = [row.at(now) for row in rows if (row.terms.network or SIMULATED) == offered]
    return success([show_plan(row) for row in _nearest_first(rows, link)])


def _nearest_first(rows: Sequence[PlanRow], link: Link) -> list[PlanRow]:
    """Sort plans by price, those that share a country with the link first; ties stay in order."""
    here = {code for each in link.current_activations for code in each.plan.countries}

    def rank(row: PlanRow) -> tuple[bool, int]:
        is_elsewhere = here.isdisjoint(each.country_code for each in row.terms.coverage)
        return is_elsewhere, row.terms.retail_price_micros

    return sorted(rows, key=rank)
