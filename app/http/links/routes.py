"""eSIMs of your organization. A link is named by its id or by its ICCID.

They are bought with a first plan, read, suspended and reactivated. One operation removes and adds
plans.
"""

from collections.abc import Collection, Sequence
from os import urandom
from typing import Any, Final

from flask import Response
from msgspec.structs import asdict
from werkzeug.exceptions import RequestEntityTooLarge

from app.bootstrap.container import Container
from app.http.accounts.routes import TransactionPage
from app.http.catalogue import NOT_A_COUNTRY, Plan, TopupQuery, show_plan
from app.http.edge.input import NOT_A_FLAG, parse_id
from app.http.edge.media import PNG, SVG, preferred
from app.http.edge.operation import Group, Shown, link_to
from app.http.edge.problem_docs import RETRY_AFTER
from app.http.edge.replies import (
    IDEMPOTENCY_REPLAYED,
    Answer,
    Page,
    error_detail,
    example,
    header,
    part_of,
    replay_headers,
    show_page,
    wait_for,
)
from app.http.edge.request import CURRENT, Given, current_request, reached
from app.http.links import qr, replies, traveller
from app.http.links.finding import link_data, list_items, load_link, show_read
from app.http.links.input import (
    NO_CONTROLS,
    RESPOND_ASYNC,
    CreateHeaders,
    CreateQuery,
    HandoverBody,
    HistoryQuery,
    LinkBody,
    LinkPlansBody,
    LinkQuery,
    QrQuery,
    RenameBody,
    StatusQuery,
    is_waited_for,
)
from app.security.authorization import Caller
from domain import errors
from domain.catalogue.plan import SIMULATED
from domain.ids import derive_id
from domain.links import notifications
from domain.links.buying import INCOMPATIBLE, UNKNOWN
from domain.links.change_plans import NOT_THERE, OFFER_S, ChangeRequest
from domain.links.create import LinkRequest
from domain.links.failing import refusal_of_link
from domain.links.handover import SECRET_BYTES, address_of, hand_over
from domain.links.link import HANDED_OVER, RENAMED, Link
from domain.links.requested import UNCHANGED
from domain.links.waiting import SHARE
from domain.money import format_amount
from domain.provider_errors import ProviderError
from domain.webhooks.destination import NOT_HTTPS
from projections.engine.shape import amount_of, format_time, id_of
from projections.models.plans import PlanFilter, PlanRow
from projections.models.transactions import Transaction

blueprint = Group("Links", "links", description=__doc__)
plans_blueprint = Group(
    "Plans of links",
    "links",
    description="What runs on a link: plans are added for money and removed without.",
)
blueprint.loaders["identifier"] = plans_blueprint.loaders["identifier"] = load_link

POLL_S: Final = "1"
NOTIFICATION_BYTES_MAX = 16_384  # Many times what any network sends.
PREFERENCE_APPLIED: Final = header(
    "Preference-Applied", "The preference that was followed (RFC 7240).", enum=[RESPOND_ASYNC]
)
# A repeated request with the key gets the failure of the first one.
_REPLAYED: Final = {"headers": IDEMPOTENCY_REPLAYED}
_BUSY: Final = errors.RateLimited(SHARE)


@blueprint.operation(
    "GET /v1/links",
    query=LinkQuery,
    reply=example("A page of links.", replies.LinkPage),
    leads_to=link_to("read_link", identifier="/data/data/0/id"),
    invalid={"status": f"Must be one of: {', '.join(replies.STATUSES)}."},
)
def list_links(caller: Caller, given: Given[None]) -> Page[replies.Link]:
    """List your links, newest first unless `sort` says otherwise.

    Status and usage are the last known; read a link to have the network asked. All filters can be
    combined. A page past the end is an empty list.
    """
    items, total = list_items(given.parts, caller.organization_id, given.query)
    return show_page(items, total, given.query)


@blueprint.operation(
    "POST /v1/links",
    query=CreateQuery,
    body=LinkBody,
    headers=CreateHeaders,
    key=True,
    buys=True,
    reply=[
        Shown(
            replies.CREATED,
            201,
            leads_to=link_to(
                "read_link read_network_status list_topup_plans change_link_plans "
                "list_link_history suspend_link rename_link cancel_link end_link read_link_qr "
                "hand_over_link revoke_handover",
                identifier="/data/id",
            ),
        ),
        Shown(
            example(
                "The link is being made; `Location` tells what becomes of it.", replies.LinkRequest
            ),
            202,
            headers=RETRY_AFTER | PREFERENCE_APPLIED,
            leads_to=link_to("read_link_request", request_id="/data/id"),
        ),
        Shown(
            example("The link can be created, for this price.", replies.LinkQuote), is_outcome=False
        ),
    ],
    errors="CONFIG_ERROR IDEMPOTENCY_IN_PROGRESS PROVISIONING_FAILED PROVISIONING_ERROR",
    invalid={"plan_id": UNKNOWN},
    examples=[
        _BUSY,
        errors.IncompleteNetworkAnswer("4.50 USD has been refunded", refunded="4.50"),
        errors.ProvisioningError(errors.NO_ESIM, "nothing was taken", refunded="0.00"),
    ],
    doc={"responses": dict.fromkeys((402, 403, 500, 502), _REPLAYED)},
)
def create_link(caller: Caller, given: Given[None]) -> Answer:
    """Create a link with its first plan.

    The price of the plan is charged when an eSIM has been found, and is back before a failure is
    told. The reply comes when the link is active: allow for half a minute. If it is lost, send the
    request again with the same `Idempotency-Key`. With `Prefer: respond-async` the reply comes at
    once. With `dry_run` everything is checked, the price is told, and nothing is made.
    """
    create, cause, body = given.parts.link_create, given.cause(), given.body
    waits = is_waited_for(given.headers.get("prefer", ""))
    wanted = LinkRequest(
        caller.organization_id, body["plan_id"], body["name"], given.key, waits=waits
    )
    if given.query["dry_run"]:
        (plan, left), currency = create.quote(wanted, cause), given.parts.settings.currency
        facts = {"plan_name": plan.name, "balance_after": amount_of(left)}
        return Answer(replies.LinkQuote.of(plan, **facts, currency=currency))
    link, replayed = create.run(wanted, cause)
    headers = replay_headers(replayed)
    base = reached(given.parts.settings.base)
    if not link.is_visible:
        headers = {"Preference-Applied": RESPOND_ASYNC, "Retry-After": POLL_S, **headers}
        headers["Location"] = f"{base}/v1/link-requests/{link.id}"
        return Answer(replies.LinkRequest(id=link.id, status="pending"), 202, headers)
    return Answer(_new(given, link), 201, {"Location": f"{base}/v1/links/{link.id}", **headers})


def _new(given: Given[Any], link: Link) -> replies.NewLink:
    price, parts = link.requested.price, given.parts
    cause = given.cause(parts.clock())
    shown = link_data(parts, parts.link_readings.read(link, cause, live=False))
    return replies.NewLink(
        **asdict(shown) | {"lpa_profile": shown.lpa_profile or ""},
        activation_url=shown.apple_activation_url,
        amount_charged=format_amount(price.amount_micros if price is not None else 0),
        currency=parts.settings.currency,
    )


def _load_request(caller: Caller, given: Given[Any], request_id: str) -> Link:
    """Return a link that the caller has asked for, also one that is pending or has failed."""
    link = given.parts.log.find(Link, parse_id(request_id))
    if link is None or link.organization_id != caller.organization_id:
        raise errors.NotFound
    return link


@blueprint.operation(
    "GET /v1/link-requests/<request_id>",
    resource=_load_request,
    reply=Shown(replies.OUTCOME, headers=RETRY_AFTER),
)
def read_link_request(_: Caller, given: Given[Link]) -> Answer:
    """Read what has become of a request for a link.

    `Retry-After` stands on it while the link is being made. After a failure the error is the one
    that a request that waits is told, and `refunded` is what has come back.
    """
    link = given.found
    shown = replies.LinkOutcome(id=link.id, status="pending", link=None, error=None, refunded=None)
    if link.is_visible:
        shown.status, shown.link = "active", _new(given, link)
    elif link.failure is not None:
        refund = link.failure.refund
        shown.status, shown.error = "failed", error_detail(refusal_of_link(link))
        shown.refunded = format_amount(refund.amount_micros if refund is not None else 0)
    return Answer(shown, headers={"Retry-After": POLL_S} if shown.status == "pending" else {})


@blueprint.operation("GET /v1/links/<identifier>", reply=replies.LINK)
def read_link(_: Caller, given: Given[Link]) -> Answer:
    """Read a link, its plans and its usage.

    The network is asked. Where it cannot be reached, what it said last is shown with its
    `usage_as_of`, and `meta.stale` is true.
    """
    return show_read(given, given.found)


@blueprint.operation(
    "PATCH /v1/links/<identifier>",
    body=RenameBody,
    reply=replies.LINK,
    invalid={"name": NO_CONTROLS},
    examples=[errors.RateLimited(RENAMED, retry_after_s=3_600)],
)
def rename_link(_: Caller, given: Given[Link]) -> Answer:
    """Give a link another name, or none.

    An ended one can be renamed too.
    """
    readings = given.parts.link_readings
    return show_read(given, readings.rename(given.found, given.body["name"], given.cause()))


@blueprint.operation(
    "DELETE /v1/links/<identifier>",
    reply=replies.LINK,
    errors="LINK_BUSY PROVISIONING_ERROR",
    examples=[_BUSY, errors.ProvisioningError(errors.UNREACHABLE, UNCHANGED)],
)
def end_link(_: Caller, given: Given[Link]) -> Answer:
    """End a link for good.

    Its network stops it, and removes from it what it can. No money goes back, and no monthly fee
    counts it from the next month on. An ended link stays in the list and keeps its history; to end
    it again changes nothing. While a change of plans is open it waits 5 s, then it is `LINK_BUSY`.
    """
    return show_read(given, given.parts.link_ending.end(given.found, given.cause()))


@blueprint.operation(
    "POST /v1/links/<identifier>/cancel",
    reply=replies.LINK,
    errors="LINK_BUSY PROVISIONING_ERROR NOT_SUPPORTED_BY_NETWORK LINK_ENDED LINK_IN_USE "
    "CANCEL_WINDOW_OVER NETWORK_UNAVAILABLE",
    invalid={"reason": "Unknown field."},
    examples=[_BUSY, errors.ProvisioningError(errors.UNREACHABLE, UNCHANGED)],
)
def cancel_link(_: Caller, given: Given[Link]) -> Answer:
    """Cancel a link that was never installed nor used, and get its money back.

    Its network is asked at this moment. What is left of its activation and of each top-up is
    refunded in the commit that ends it. After a 502 it is settled by itself within minutes: read
    the link. To cancel it again changes nothing. While a change of plans is open it waits 5 s, then
    it is `LINK_BUSY`.
    """
    return show_read(given, given.parts.link_ending.cancel(given.found, given.cause()))


_SWITCH: Final[dict[str, Any]] = {
    "reply": replies.LINK,
    "errors": "NOT_SUPPORTED_BY_NETWORK LINK_ENDED LINK_BUSY PROVISIONING_ERROR",
    "invalid": {"status": "Unknown field."},
    "examples": [_BUSY, errors.ProvisioningError(errors.UNREACHABLE, "the status is unchanged")],
}


@blueprint.operation("POST /v1/links/<identifier>/suspend", **_SWITCH)
def suspend_link(_: Caller, given: Given[Link]) -> Answer:
    """Stop the traffic of a link.

    Its plans go on to expire. One that is suspended already is left as it is. It does not wait for
    a change of plans; `LINK_BUSY` while the link is being ended.
    """
    return show_read(given, given.parts.link_status.run(given.found, "suspended", given.cause()))


@blueprint.operation("POST /v1/links/<identifier>/reactivate", **_SWITCH)
def reactivate_link(_: Caller, given: Given[Link]) -> Answer:
    """Let a link carry traffic again.

    This is for one that is suspended or inactive. An active one is left as it is. It does not wait
    for a change of plans; `LINK_BUSY` while the link is being ended.
    """
    return show_read(given, given.parts.link_status.run(given.found, "active", given.cause()))


@blueprint.operation(
    "GET /v1/links/<identifier>/qr",
    query=QrQuery,
    also={SVG: "<svg …", PNG: "PNG"},
    errors="LINK_ENDED NETWORK_UNAVAILABLE",
    invalid={"size": "Must be a whole number from 128 to 2048."},
    doc={"responses": {200: {"description": "The image."}}},
)
def read_link_qr(caller: Caller, given: Given[Link]) -> Response:
    """Read the activation code of a link as a QR code, which a phone scans to install it.

    It is an SVG, or with `Accept: image/png` a PNG. Whoever has it can install the eSIM.
    """
    media = preferred(PNG, first=SVG)
    given.found.require_live()
    code = given.parts.link_readings.activation_code(given.found, given.cause())
    draw = qr.as_png if media == PNG else qr.as_svg
    headers = {"Cache-Control": "private", "Vary": "Accept, Authorization, X-Organization-Id"}
    with given.parts.pictures.slot(caller.organization_id):
        image = draw(code, given.query["size"])
    return Response(image, headers=headers, content_type=media)


@blueprint.operation(
    "POST /v1/links/<identifier>/handover",
    body=HandoverBody,
    key=True,
    reply=Shown(example("The address.", replies.Handover), 201),
    errors="LINK_ENDED NETWORK_UNAVAILABLE",
    invalid={"top_up_url": NOT_HTTPS},
    examples=[errors.RateLimited(HANDED_OVER, retry_after_s=3_600)],
)
def hand_over_link(_: Caller, given: Given[Link]) -> Answer:
    """Make a page for the traveller of a link.

    It installs the eSIM on a phone and tells what is left of its plans, as last seen. It takes the
    place of the one before. It opens until its end, unless the link has ended, it or your
    organization is suspended, or something was erased. Its `url` is told once: a replay has none,
    and if the reply was lost ask again with another key.
    """
    parts, link, cause = given.parts, given.found, given.cause()
    if link.is_live:
        parts.link_readings.activation_code(link, cause)
        link = link if link.lpa is not None else parts.log.get(Link, link.id)
        if link.lpa is None:  # It could not be stored now, and nobody asks when the page is opened.
            raise errors.NetworkUnavailable
    derived = given.key and derive_id("handover", link.organization_id, given.key)
    stream_id, secret = derived or parts.new_id(), urandom(SECRET_BYTES)
    made, replayed = hand_over(
        parts.log, parts.vault, link, stream_id, cause, secret=secret, **given.body
    )
    base = reached(parts.settings.base)
    url = None if replayed else f"{base}{traveller.PATH}{address_of(made.id, secret)}"
    headers = {"Location": f"{base}/v1/links/{link.id}", **replay_headers(replayed)}
    return Answer(replies.Handover(url=url, expires_at=format_time(made.made.until)), 201, headers)


@blueprint.operation(
    "DELETE /v1/links/<identifier>/handover",
    reply=example("It is gone.", replies.Handover, "NoHandover", url=None, expires_at=None),
)
def revoke_handover(_: Caller, given: Given[Link]) -> replies.Handover:
    """Revoke the address of a traveller's page.

    At once: who opens it is told that there is nothing. To revoke it again changes nothing.
    """
    cause = given.cause()
    given.parts.log.update(given.found, lambda newest: newest.hand_over(None, cause))
    return replies.Handover(url=None, expires_at=None)


@blueprint.operation(
    "GET /v1/links/<identifier>/history",
    query=HistoryQuery,
    reply=example("A page of transactions.", TransactionPage),
    invalid={"per_page": "Must be a whole number from 1 to 100."},
)
def list_link_history(caller: Caller, given: Given[Link]) -> Page[Transaction]:
    """List the transactions that concern a link, newest first.

    These are its activation, its top-ups, their refunds, and the monthly fees that count it.
    """
    parts, query = given.parts, given.query
    wait_for(parts, parts.transactions.name)
    entries, total = parts.views.read(
        parts.transactions.link_history, caller.organization_id, given.found.id, part_of(query)
    )
    return show_page(entries, total, query)


@blueprint.operation(
    "GET /v1/links/<identifier>/network-status",
    query=StatusQuery,
    reply=example("The network status.", replies.NetworkStatus, meta=replies.LinkMeta),
    errors="NETWORK_UNAVAILABLE",
    invalid={"live": NOT_A_FLAG},
    examples=[_BUSY],
)
def read_network_status(_: Caller, given: Given[Link]) -> replies.NetworkStatus:
    """Read whether and where a link is connected.

    What the network has said within the last minute is given again; with `live` it is always asked.
    Where it cannot be reached, what it said last is shown, and `meta.stale` is true.
    """
    found = given.parts.link_readings.status(given.found, live=given.query["live"])
    given.stale = found.is_stale
    return replies.show_status(given.found, found.status, cached=found.is_stored)


_PARTLY: Final[tuple[str, str]] = ("4.50 USD has been refunded", "what was done before it stays")
_DONE: Final[dict[str, Any]] = {"refunded": "4.50", "removed": [id_of("activation")], "added": []}


@plans_blueprint.operation(
    "PUT /v1/links/<identifier>/plans",
    body=LinkPlansBody,
    key=True,
    buys=True,
    reply=example("The link as it is now.", replies.ChangedLink, meta=replies.LinkMeta),
    errors="NOT_SUPPORTED_BY_NETWORK LINK_ENDED LINK_BUSY IDEMPOTENCY_IN_PROGRESS "
    "PROVISIONING_FAILED PROVISIONING_ERROR",
    invalid={"remove.0": NOT_THERE, "add.1": INCOMPATIBLE},
    examples=[
        _BUSY,
        errors.IncompleteNetworkAnswer(*_PARTLY, **_DONE),
        errors.ProvisioningError(errors.LATE, *_PARTLY, **_DONE),
    ],
    doc={"responses": {502: _REPLAYED}},
)
def change_link_plans(caller: Caller, given: Given[Link]) -> Answer:
    """Remove plans from a link and add others.

    Everything is checked before anything is done. The removals come first and give no money back;
    all additions are charged at once and made in their order. At the first failure it ends: that
    addition and the later ones are refunded, and the reply says what has been done. While another
    change of the link is open it waits 15 s, then it is `LINK_BUSY`.
    """
    parts, link, body = given.parts, given.found, given.body
    wanted = ChangeRequest(
        caller.organization_id, link.id, body["remove"], body["add"], given.key, link.network
    )
    change, replayed = parts.link_plans.run(wanted, given.cause())
    newest, headers = parts.log.get(Link, link.id), replay_headers(replayed)
    amount, currency = format_amount(change.kept_micros), parts.settings.currency
    return show_read(
        given, newest, replies.ChangedLink, headers, amount_charged=amount, currency=currency
    )


@plans_blueprint.operation(
    "GET /v1/links/<identifier>/topup-plans",
    query=TopupQuery,
    reply=example("The plans.", list[Plan], "TopupPlansReply"),
    errors="NETWORK_UNAVAILABLE",
    invalid={"country": NOT_A_COUNTRY},
    examples=[_BUSY],
)
def list_topup_plans(caller: Caller, given: Given[Link]) -> list[Plan]:
    """List the plans that can be added to a link, those for where it works first.

    They are of its network and run on its sponsor profile. Where the profile is not known, they are
    those that the network says it can put on this eSIM; one that has to be asked for each plan is
    asked for the first ten. Without `sort` those that share a country with a plan of the link come
    first, then the others, each by price. For a link that has ended there are none.
    """
    parts, link = given.parts, given.found
    if link.ended is not None:
        return []
    wait_for(parts, parts.plans.name)
    profile_id = link.sponsor_profile.id if link.sponsor_profile is not None else None
    wanted = PlanFilter(parts.clock(), **given.query)
    rows = parts.views.read(parts.plans.compatible, caller.organization_id, wanted, profile_id)
    offered = None if parts.gate.is_drained(link.network) else link.network
    rows = [row for row in rows if (row.terms.network or SIMULATED) == offered]
    rows = rows if "sort" in given.query else _nearest_first(rows, link)
    ids = _accepted(parts, link, rows) if link.sponsor_profile is None else None
    return [show_plan(row) for row in rows if ids is None or row.terms.provider_plan_id in ids]


def _accepted(parts: Container, link: Link, rows: Sequence[PlanRow]) -> Collection[str] | None:
    """Return which plans the network of a link can put on it; None if it does not tell."""
    ids = dict.fromkeys(row.terms.provider_plan_id for row in rows)
    try:
        with parts.waiting[link.network].slot(link.organization_id):
            return parts.networks.topups(link, [each for each in ids if each], OFFER_S)
    except ProviderError:
        raise errors.NetworkUnavailable from None


def _nearest_first(rows: Sequence[PlanRow], link: Link) -> list[PlanRow]:
    """Sort plans by price, those that share a country with the link first; ties stay in order."""
    here = {code for each in link.current_activations for code in each.plan.countries}

    def rank(row: PlanRow) -> tuple[bool, int]:
        is_elsewhere = here.isdisjoint(each.country_code for each in row.terms.coverage)
        return is_elsewhere, row.terms.retail_price_micros

    return sorted(rows, key=rank)


def receive_notification(name: str) -> Response:
    """Take a notification of a network, whose signature stands in place of a token."""
    request, given = current_request(), CURRENT.get()
    body = request.get_data()
    if len(body) > NOTIFICATION_BYTES_MAX:
        raise RequestEntityTooLarge
    headers = {key.lower(): value for key, value in request.headers.items()}
    given.parts.gate.refuse()
    reads, cause = given.parts.link_readings, given.cause(given.parts.clock())
    notifications.receive(reads, name, headers, body, cause)
    response = Response(status=204)
    del response.headers["Content-Type"]
    return response
