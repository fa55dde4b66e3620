"""Links: eSIMs that are bought with a first plan, read, suspended and reactivated."""

from typing import Any, Final

from flask import Response
from msgspec.structs import asdict

from app.authorization import Caller
from app.http.age import wait_for
from app.http.blueprint import Blueprint
from app.http.commanding import IDEMPOTENCY_REPLAYED, current_cause, replay_headers
from app.http.envelope import success
from app.http.link_finding import find_link
from app.http.link_list import list_items
from app.http.link_replies import (
    CREATED,
    HISTORY,
    LINK,
    LINK_PAGE,
    NETWORK_STATUS,
    STATUSES,
    NewLink,
    show_status,
)
from app.http.link_reply import link_data, reply_link
from app.http.operation import operation
from app.http.paging import offset_of, show_page
from app.http.paths import reached
from app.http.request_context import container
from app.http.schemas.link_input import (
    NOT_A_FLAG,
    HistoryQuery,
    LinkBody,
    LinkQuery,
    NoBody,
    StatusQuery,
)
from app.http.schemas.request_headers import IdempotencyHeader
from app.http.wallet_replies import show_transaction
from domain import errors
from domain.links.create import LinkRequest
from domain.links.link import Link
from domain.links.offers import UNKNOWN
from domain.links.status import Target
from domain.links.waiting import SHARE
from domain.money import format_amount

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
    errors.InsufficientBalance(4_500_000, 1_000_000, "USD"),
    errors.IdempotencyInProgress(),
    errors.ProvisioningFailed("4.50 USD has been refunded", refunded="4.50"),
    errors.ProvisioningError(errors.NO_ESIM, "nothing was taken", refunded="0.00"),
)
_LOCATION: Final = {"Location": {"description": "Where it is.", "schema": {"type": "string"}}}
_SWITCH_REFUSALS: Final = (
    errors.NotFound(),
    errors.ValidationFailed({"status": ["Unknown field."]}),
    errors.RateLimited(SHARE),
    errors.ProvisioningError(errors.UNREACHABLE, "the status is unchanged"),
)


@blueprint.route("/v1/links", methods=["GET"])
@operation(
    scope="links",
    refusals=[errors.ValidationFailed({"status": [f"Must be one of: {', '.join(STATUSES)}."]})],
)
@blueprint.arguments(LinkQuery, location="query")
@blueprint.replies(200, LINK_PAGE)
def list_links(caller: Caller, query: dict[str, Any]) -> Response:
    """List your links, newest first.

    Status and usage are the last known; read a link to have the network asked. A page past the end
    is an empty list.
    """
    items, total = list_items(container(), caller.organization_id, query)
    return success(show_page(items, total, query))


@blueprint.route("/v1/links", methods=["POST"])
@operation(scope="links", refusals=CREATE_REFUSALS, takes_body=True)
@blueprint.arguments(LinkBody, location="json")
@blueprint.arguments(IdempotencyHeader, location="headers")
@blueprint.replies(201, CREATED, headers=_LOCATION | IDEMPOTENCY_REPLAYED)
def create_link(caller: Caller, body: dict[str, Any], header: dict[str, Any]) -> Response:
    """Create a link with its first plan.

    The price of the plan is charged when an eSIM has been found, and is back before a failure is
    told. The reply comes when the link is active: allow for half a minute. If it is lost, send the
    request again with the same `Idempotency-Key`.
    """
    parts = container()
    wanted = LinkRequest(caller.organization_id, body["plan_id"], body["name"], header.get("key"))
    cause = current_cause()
    link, replayed = parts.link_create.run(wanted, cause)
    price = link.requested.price
    shown = link_data(parts.link_readings.read(link, cause, live=False))
    data = NewLink(
        **asdict(shown),
        activation_url=shown.apple_activation_url,
        amount_charged=format_amount(price.amount_micros if price is not None else 0),
        currency=parts.settings.currency,
    )
    location = f"{reached(parts.settings.base)}/v1/links/{link.id}"
    return success(data, 201, headers={"Location": location, **replay_headers(replayed)})


@blueprint.route("/v1/links/<identifier>", methods=["GET"])
@operation(scope="links", resource=find_link, refusals=[errors.NotFound()])
@blueprint.replies(200, LINK)
def read_link(_: Caller, link: Link) -> Response:
    """Read a link, its plans and its usage.

    The network is asked. Where it cannot be reached, what it said last is shown with its
    `usage_as_of`, and `meta.stale` is true.
    """
    return reply_link(link)


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
    status, cached, stale = container().link_readings.status(link, live=query["live"])
    return success(show_status(link, status, cached=cached), stale=stale)


def _switch(link: Link, target: Target) -> Response:
    return reply_link(container().link_status.run(link, target, current_cause()))
