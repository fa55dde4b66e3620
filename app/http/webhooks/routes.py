"""Webhooks: where an organization is told what happens, and what it was told."""

from typing import Any, Final
from uuid import UUID

from flask import Response
from msgspec.structs import asdict

from app.http.edge.input import NOT_A_FLAG, Blueprint, IdempotencyHeader, parse_id
from app.http.edge.operation import operation
from app.http.edge.paging import PageQuery, offset_of, show_page
from app.http.edge.replies import IDEMPOTENCY_REPLAYED, LOCATION, replay_headers, success
from app.http.edge.request import container, current_cause, reached
from app.http.links.input import NoBody
from app.http.webhooks import told
from app.http.webhooks.input import WebhookBody, WebhookChanges
from app.http.webhooks.replies import (
    ASKED,
    DELIVERIES,
    REMOVED,
    WEBHOOK,
    WEBHOOKS,
    WITH_SECRET,
    Asked,
    Removed,
    Webhook,
    WebhookWithSecret,
    show_delivery,
    show_webhook,
)
from app.security.authorization import Caller
from domain import errors
from domain.webhooks.commands import Changes, Draft
from domain.webhooks.destination import NOT_HTTPS
from domain.webhooks.endpoint import CHANGED, REGISTERED, WebhookEndpoint
from domain.webhooks.ports import Delivery
from domain.webhooks.signatures import Generation

blueprint = Blueprint(
    "Webhooks", __name__, description="Where you are told what happens, instead of asking for it."
)

blueprint.webhooks, blueprint.schemas = told.webhooks(), told.schemas()

SCOPE: Final = "webhooks"
KEY_REVOKED: Final = "This secret was revoked; rotate-secret with another key gives a new one."
_TO_ONE: Final = tuple(
    (name, "webhook_id", "/data/id")
    for name in (
        "read_webhook",
        "change_webhook",
        "delete_webhook",
        "rotate_webhook_secret",
        "send_test_webhook",
        "list_deliveries",
    )
)


def find_webhook(caller: Caller, webhook_id: str) -> WebhookEndpoint:
    """Return an endpoint of the caller, or raise NotFound."""
    return container().webhooks.get(caller.organization_id, parse_id(webhook_id))


def find_any_webhook(caller: Caller, webhook_id: str) -> WebhookEndpoint:
    """Return an endpoint of the caller, also one that was deleted."""
    return container().webhooks.owned(caller.organization_id, parse_id(webhook_id))


def find_delivery(
    caller: Caller, webhook_id: str, delivery_id: str
) -> tuple[WebhookEndpoint, Delivery]:
    """Return a delivery of an endpoint of the caller, or raise NotFound."""
    endpoint = find_webhook(caller, webhook_id)
    wanted = parse_id(delivery_id)
    found = container().webhook_deliveries.get(caller.organization_id, endpoint.id, wanted)
    if found is None:
        raise errors.NotFound
    return endpoint, found


@blueprint.route("/v1/webhooks", methods=["POST"])
@operation(
    scope=SCOPE,
    refusals=[
        errors.ValidationFailed({"url": [NOT_HTTPS]}),
        errors.IdempotencyKeyReused(),
        errors.WebhookLimit(),
        errors.RateLimited(REGISTERED, retry_after_s=3_600),
    ],
    takes_body=True,
)
@blueprint.arguments(
    WebhookBody,
    location="json",
    example={"url": WEBHOOK.data.url, "events": WEBHOOK.data.events, "description": "Production"},
)
@blueprint.arguments(IdempotencyHeader, location="headers")
@blueprint.replies(201, WITH_SECRET, headers=LOCATION | IDEMPOTENCY_REPLAYED, leads_to=_TO_ONE)
def create_webhook(caller: Caller, body: dict[str, Any], header: dict[str, Any]) -> Response:
    """Register an endpoint.

    It is told what happens from now on. Its `secret` is shown only here: keep it, for it verifies
    what you are told. An organization has at most 10 endpoints.
    """
    parts = container()
    parts.webhook_key.require()  # Without the key there is no secret to show.
    wanted = Draft(
        caller.organization_id,
        body["url"],
        body.get("description"),
        body.get("events"),
        header.get("key"),
    )
    endpoint, replayed = parts.webhooks.register(wanted, current_cause())
    headers = {"Location": _location(endpoint.id), **replay_headers(replayed)}
    return success(_with_secret(endpoint, endpoint.secrets[0]), 201, headers=headers)


@blueprint.route("/v1/webhooks", methods=["GET"])
@operation(scope=SCOPE)
@blueprint.replies(200, WEBHOOKS, leads_to=[("read_webhook", "webhook_id", "/data/0/id")])
def list_webhooks(caller: Caller) -> Response:
    """List your endpoints, oldest first.

    All of them: there are at most 10. No secret is shown.
    """
    parts = container()
    known = [
        (each, parts.webhooks.address(each)) for each in parts.webhooks.all(caller.organization_id)
    ]
    return success([show_webhook(each, address) for each, address in known if address is not None])


@blueprint.route("/v1/webhooks/<webhook_id>", methods=["GET"])
@operation(scope=SCOPE, resource=find_webhook, refusals=[errors.NotFound()])
@blueprint.replies(200, WEBHOOK)
def read_webhook(_: Caller, endpoint: WebhookEndpoint) -> Response:
    """Read an endpoint.

    Whether it is told anything, and why it is not. Its secret is not shown.
    """
    return success(_shown(endpoint))


@blueprint.route("/v1/webhooks/<webhook_id>", methods=["PATCH"])
@operation(
    scope=SCOPE,
    resource=find_webhook,
    refusals=[
        errors.NotFound(),
        errors.ValidationFailed({"enabled": [NOT_A_FLAG]}),
        errors.RateLimited(CHANGED, retry_after_s=3_600),
    ],
    takes_body=True,
)
@blueprint.arguments(WebhookChanges, location="json", required=False, example={"enabled": True})
@blueprint.replies(200, WEBHOOK)
def change_webhook(caller: Caller, endpoint: WebhookEndpoint, body: dict[str, Any]) -> Response:
    """Change an endpoint, or switch it off and on.

    What is left out stays as it is. One that was disabled is told what happens after it was
    enabled again.
    """
    changed = container().webhooks.change(
        caller.organization_id, endpoint.id, Changes(**body), current_cause()
    )
    return success(_shown(changed))


@blueprint.route("/v1/webhooks/<webhook_id>", methods=["DELETE"])
@operation(scope=SCOPE, resource=find_any_webhook, refusals=[errors.NotFound()])
@blueprint.replies(200, REMOVED)
def delete_webhook(caller: Caller, endpoint: WebhookEndpoint) -> Response:
    """Delete an endpoint.

    It is told nothing any more, and every other operation on it is 404. Deleting it again changes
    nothing.
    """
    deleted = container().webhooks.delete(caller.organization_id, endpoint.id, current_cause())
    return success(Removed(deleted.id))


@blueprint.route("/v1/webhooks/<webhook_id>/rotate-secret", methods=["POST"])
@operation(
    scope=SCOPE,
    resource=find_webhook,
    refusals=[
        errors.NotFound(),
        errors.IdempotencyKeyReused(),
        errors.RateLimited(CHANGED, retry_after_s=3_600),
    ],
    takes_body=True,
)
@blueprint.arguments(NoBody, location="json", required=False)
@blueprint.arguments(IdempotencyHeader, location="headers")
@blueprint.replies(200, WITH_SECRET, headers=IDEMPOTENCY_REPLAYED)
def rotate_webhook_secret(
    caller: Caller, endpoint: WebhookEndpoint, _: dict[str, Any], header: dict[str, Any]
) -> Response:
    """Give an endpoint a new secret.

    For 24 hours what it is told is signed with both, the new one and the one before, so that you
    can change over without losing anything.
    """
    parts = container()
    parts.webhook_key.require()  # Without the key there is no secret to show.
    rotated, generation, replayed = parts.webhooks.rotate_secret(
        caller.organization_id, endpoint.id, header.get("key"), current_cause()
    )
    return success(_with_secret(rotated, generation), headers=replay_headers(replayed))


@blueprint.route("/v1/webhooks/<webhook_id>/test", methods=["POST"])
@operation(
    scope=SCOPE,
    resource=find_webhook,
    refusals=[errors.NotFound(), errors.WebhookDisabled()],
    takes_body=True,
)
@blueprint.arguments(NoBody, location="json", required=False)
@blueprint.replies(202, ASKED, headers=LOCATION)
def send_test_webhook(caller: Caller, endpoint: WebhookEndpoint, _: dict[str, Any]) -> Response:
    """Tell an endpoint a `webhook.test`.

    Whatever types it is told of. It is sent once; what came of it stands in the deliveries.
    """
    made = container().webhooks.test(caller.organization_id, endpoint.id, current_cause())
    return _asked(endpoint, made)


@blueprint.route("/v1/webhooks/<webhook_id>/deliveries", methods=["GET"])
@operation(
    scope=SCOPE,
    resource=find_webhook,
    refusals=[
        errors.NotFound(),
        errors.ValidationFailed({"per_page": ["Must be a whole number from 1 to 100."]}),
    ],
)
@blueprint.arguments(PageQuery, location="query")
@blueprint.replies(200, DELIVERIES)
def list_deliveries(caller: Caller, endpoint: WebhookEndpoint, query: dict[str, Any]) -> Response:
    """List what an endpoint was told, newest first.

    They are kept for 30 days.
    """
    found, total = container().webhook_deliveries.page(
        caller.organization_id, endpoint.id, offset_of(query), query["per_page"]
    )
    return success(show_page([show_delivery(each) for each in found], total, query))


@blueprint.route("/v1/webhooks/<webhook_id>/deliveries/<delivery_id>/redeliver", methods=["POST"])
@operation(
    scope=SCOPE,
    resource=find_delivery,
    refusals=[errors.NotFound(), errors.IdempotencyKeyReused(), errors.WebhookDisabled()],
    takes_body=True,
)
@blueprint.arguments(NoBody, location="json", required=False)
@blueprint.arguments(IdempotencyHeader, location="headers")
@blueprint.replies(202, ASKED, headers=LOCATION | IDEMPOTENCY_REPLAYED)
def redeliver(
    caller: Caller,
    found: tuple[WebhookEndpoint, Delivery],
    _: dict[str, Any],
    header: dict[str, Any],
) -> Response:
    """Tell an endpoint something again.

    With the same `webhook-id` and body, whether it was accepted or not, and with the repeats of a
    first delivery.
    """
    endpoint, delivery = found
    replayed = container().webhooks.redeliver(
        caller.organization_id, endpoint.id, delivery.id, header.get("key"), current_cause()
    )
    return _asked(endpoint, delivery.id, replayed=replayed)


def _location(webhook_id: UUID) -> str:
    return f"{reached(container().settings.base)}/v1/webhooks/{webhook_id}"


def _asked(endpoint: WebhookEndpoint, delivery_id: UUID, *, replayed: bool = False) -> Response:
    headers = {"Location": f"{_location(endpoint.id)}/deliveries", **replay_headers(replayed)}
    return success(Asked(delivery_id), 202, headers=headers)


def _shown(endpoint: WebhookEndpoint) -> Webhook:
    address = container().webhooks.address(endpoint)
    if address is None:  # It was erased.
        raise errors.NotFound
    return show_webhook(endpoint, address)


def _with_secret(endpoint: WebhookEndpoint, generation: Generation) -> WebhookWithSecret:
    secret = container().webhook_signer.secret(endpoint.id, generation)
    if secret is None:  # Asked for again after its key was revoked.
        raise errors.NotFound(KEY_REVOKED)
    return WebhookWithSecret(**asdict(_shown(endpoint)), secret=secret)
