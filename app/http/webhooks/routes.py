"""Where you are told what happens, instead of asking for it."""

from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime
from typing import Annotated, Any, ClassVar, Final, get_args
from uuid import UUID

from marshmallow import Schema, ValidationError, validate
from msgspec import Raw, Struct
from msgspec.structs import asdict

from app.http.accounts.input import NOT_A_TIME
from app.http.accounts.input import Moment as TimeField
from app.http.edge.input import NOT_A_FLAG, Few, Flag, PageQuery, Text, choice, parse_id
from app.http.edge.operation import Group, Shown, link_to
from app.http.edge.replies import Answer, Page, example, part_of, replay_headers, show_page
from app.http.edge.request import CURRENT, Given, reached
from app.http.edge.schemas import example_of
from app.http.links.input import Name, check_url
from app.http.webhooks import message_docs
from app.security.authorization import Caller
from domain.errors import NotFound, RateLimited
from domain.webhooks.commands import REDELIVERED_MAX, Changes, Draft, Failed
from domain.webhooks.deliveries import Delivery, DeliveryStatus
from domain.webhooks.destination import NOT_HTTPS, URL_CHARS_MAX
from domain.webhooks.endpoint import CHANGED, REGISTERED, DisabledReason, WebhookEndpoint
from domain.webhooks.messages import NAMED_ONLY, TEST, TYPES
from domain.webhooks.signatures import Generation
from projections.engine.freshness import require_projected
from projections.engine.shape import MORE_MAY_COME, Moment, Shape, format_time, id_of, means, one_of
from workers.webhook_planner import WebhookPlanner

TYPE: Final = one_of("WebhookType", [*TYPES, TEST], MORE_MAY_COME)
STATUS: Final = one_of("DeliveryStatus", get_args(DeliveryStatus), MORE_MAY_COME)
REASON: Final = one_of("DisabledReason", get_args(DisabledReason), MORE_MAY_COME)


class Webhook(Shape):
    """An endpoint that is told what happens."""

    id: Annotated[UUID, means("The endpoint.")]
    url: Annotated[
        str, means("Where it is.", format="uri", example="https://hooks.partner.example")
    ]
    description: Annotated[str | None, means("Your words for it.", example="Production")]
    events: Annotated[
        list[Annotated[str, means(**TYPE)]] | None,
        means("The types that it is told of; null: all that need not be named."),
    ]
    enabled: Annotated[bool, means("Whether it is told what happens.")]
    disabled_reason: Annotated[
        Annotated[str, means(**REASON)] | None,
        means(
            "Why it is not: you have `asked` for it, it has answered 410 (`gone`), or nothing but "
            "failures came of seven days (`failing`), or we have disabled it (`operator`)."
        ),
    ]
    created_at: Annotated[Moment, means("When it was registered (UTC).")]


class WebhookWithSecret(Webhook, kw_only=True):
    """An endpoint with its secret."""

    secret: Annotated[
        str,
        means(
            "What its signatures are verified with. It is shown only now.",
            example="whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSwAAAAAAAAAAA=",
            pattern="^whsec_[A-Za-z0-9+/]{43}=$",
        ),
    ]


class Removed(Struct):
    """What is no more."""

    id: Annotated[UUID, means("The endpoint.")]
    deleted: Annotated[bool, means(enum=[True])] = True


class Asked(Struct):
    """A delivery that is under way."""

    delivery_id: Annotated[UUID, means("The delivery, which is also its `webhook-id`.")]


class AskedAgain(Struct):
    """Deliveries that are under way again."""

    delivery_ids: Annotated[
        list[UUID], means("The deliveries, the oldest first.", example=[id_of("delivery")])
    ]
    has_more: Annotated[
        bool, means(f"Whether there were more than {REDELIVERED_MAX}; ask again for the others.")
    ]


class WebhookDelivery(Shape):
    """An event as it is told to one endpoint."""

    id: Annotated[UUID, means("The `webhook-id` of each attempt.", example=id_of("delivery"))]
    type: Annotated[str, means("What happened.", **TYPE, example="link.suspended")]
    status: Annotated[
        str,
        means(
            "`pending` until it was accepted (`delivered`), given up (`failed`), or its endpoint "
            "was disabled or deleted (`cancelled`).",
            **STATUS,
        ),
    ]
    position: Annotated[int, means("The `data.position` of its body.", example=4715)]
    attempts: Annotated[int, means("How often it was tried.")]
    response_status: Annotated[
        int | None, means("What was answered last; null: nothing.", example=503)
    ]
    error: Annotated[
        str | None,
        means("Why there was no answer, such as `timeout` or `tls_failed`.", example="timeout"),
    ]
    duration_ms: Annotated[int | None, means("How long the last attempt took.", example=112)]
    created_at: Annotated[Moment, means("When it was planned (UTC).")]
    attempted_at: Annotated[Moment | None, means("When it was tried last (UTC).")]
    next_attempt_at: Annotated[
        Moment | None, means("When it is tried next (UTC).", example="2026-11-21T03:04:10.300Z")
    ]


class DeliveryWithBody(WebhookDelivery, kw_only=True):
    """A delivery with what is sent."""

    body: Annotated[Any, message_docs.body("The body of each attempt.")]


class DeliveryPage(Page[WebhookDelivery]):
    """Deliveries."""


WEBHOOK: Final = example("The endpoint.", Webhook, disabled_reason=None)
WITH_SECRET: Final = example(
    "The endpoint with its secret, which is shown only now.",
    WebhookWithSecret,
    "WebhookSecretReply",
    disabled_reason=None,
)
ACCEPTED: Final = example("It will be delivered within seconds.", Asked)


class DeliveryQuery(PageQuery):
    """Which deliveries to list; an empty filter counts as absent."""

    status = choice(get_args(DeliveryStatus), "Only those.", "KnownDeliveryStatus")


class _Since(TimeField):
    """A moment in UTC, because an event keeps it."""

    def read(self, value: Any) -> datetime:
        with suppress(OverflowError):
            return super().read(value).astimezone(UTC)
        raise ValidationError(NOT_A_TIME)


class RedeliverBody(Schema):
    """What is to be told again."""

    example: ClassVar = {"since": "2026-11-21T00:00:00Z"}

    since = _Since("What was planned at this time or later", required=True)


NOT_A_TYPE = f"Must be one of: {', '.join(TYPES)}."
NO_TYPE = "Must name at least one type; leave it out, or null, for all that need not be named."
TWICE = "Stands there already."


class WebhookBody(Schema):
    """The endpoint to register."""

    example: ClassVar = {name: WEBHOOK.data[name] for name in ("url", "events", "description")}

    url = Text(
        "Where we POST to: an `https` URL with the port 443 whose name leads to public "
        "addresses alone, in plain ASCII, without user and fragment.",
        required=True,
        validate=lambda url: check_url(
            url, allow_private=CURRENT.get().parts.settings.webhooks_allow_private
        ),
        format="uri",  # The schema cannot say what is public.
        maxLength=URL_CHARS_MAX,
    )
    events = Few(
        "The types to be told of; null: all but those that are sent only where they are named: "
        f"{', '.join(sorted(NAMED_ONLY))}.",
        Text(
            validate=validate.OneOf([*TYPES], error=NOT_A_TYPE), **one_of("WebhookEventType", TYPES)
        ),
        most=len(TYPES),
        too_many={len(TYPES): [TWICE]},
        same=TWICE,
        allow_none=True,
        validate=validate.Length(min=1, error=NO_TYPE),
        minItems=1,
        uniqueItems=True,
    )
    description = Name("Your own words for it, without control characters; blank or null: none.")


class WebhookChanges(WebhookBody):
    """What is to change of an endpoint; what is left out stays."""

    example: ClassVar = {"enabled": True}

    enabled = Flag("Whether it is told what happens. What happened meanwhile is not made up for.")

    def __init__(self) -> None:
        super().__init__(partial=True)


def load_webhook(caller: Caller, given: Given[Any], webhook_id: str) -> WebhookEndpoint:
    return given.parts.webhooks.get(caller.organization_id, parse_id(webhook_id))


def load_any_webhook(caller: Caller, given: Given[Any], webhook_id: str) -> WebhookEndpoint:
    return given.parts.webhooks.owned(caller.organization_id, parse_id(webhook_id))


def load_delivery(caller: Caller, given: Given[Any], webhook_id: str, delivery_id: str) -> Delivery:
    """Return a delivery of an endpoint of the caller; NotFound once all are planned."""
    parts, endpoint = given.parts, load_webhook(caller, given, webhook_id)
    wanted = caller.organization_id, endpoint.id, parse_id(delivery_id)
    if (found := parts.webhook_deliveries.get(*wanted)) is None:
        require_projected(parts.source, WebhookPlanner.name)  # A reply may just have named it.
        found = parts.webhook_deliveries.get(*wanted)
    if found is None:
        raise NotFound
    return found


blueprint = Group("Webhooks", "webhooks", description=__doc__)
blueprint.loaders |= {"webhook_id": load_webhook, "delivery_id": load_delivery}
blueprint.webhooks, blueprint.schemas = message_docs.webhooks(), message_docs.schemas()

_CHANGED: Final = RateLimited(CHANGED, retry_after_s=3_600)


@blueprint.operation(
    "POST /v1/webhooks",
    body=WebhookBody,
    key=True,
    reply=Shown(
        WITH_SECRET,
        201,
        leads_to=link_to(
            "read_webhook change_webhook delete_webhook rotate_webhook_secret send_test_webhook "
            "list_deliveries redeliver_failed",
            webhook_id="/data/id",
        ),
    ),
    errors="WEBHOOK_LIMIT",
    invalid={"url": NOT_HTTPS},
    examples=[RateLimited(REGISTERED, retry_after_s=3_600)],
)
def create_webhook(caller: Caller, given: Given[None]) -> Answer:
    """Register an endpoint.

    It is told what happens from now on. Its `secret` is shown only here: keep it, for it verifies
    what you are told. An organization has at most 10 endpoints.
    """
    given.parts.webhook_key.require()  # Without the key there is no secret to show.
    owner, body = caller.organization_id, given.body
    wanted = Draft(owner, body["url"], body.get("description"), body.get("events"), given.key)
    endpoint, replayed = given.parts.webhooks.register(wanted, given.cause())
    headers = {"Location": _location(endpoint.id), **replay_headers(replayed)}
    return Answer(_with_secret(endpoint, endpoint.secrets[0]), 201, headers)


@blueprint.operation(
    "GET /v1/webhooks",
    reply=example(
        "All endpoints, oldest first.", [WEBHOOK.data], "WebhookListReply", of=list[Webhook]
    ),
    leads_to=link_to("read_webhook", webhook_id="/data/0/id"),
)
def list_webhooks(caller: Caller, given: Given[None]) -> list[Webhook]:
    """List your endpoints, oldest first.

    All of them: there are at most 10. No secret is shown.
    """
    return [*filter(None, map(_shown, given.parts.webhooks.all(caller.organization_id)))]


@blueprint.operation("GET /v1/webhooks/<webhook_id>", reply=WEBHOOK)
def read_webhook(_: Caller, given: Given[WebhookEndpoint]) -> Webhook:
    """Read an endpoint.

    Whether it is told anything, and why it is not. Its secret is not shown.
    """
    return _known(given.found)


@blueprint.operation(
    "PATCH /v1/webhooks/<webhook_id>",
    body=WebhookChanges,
    reply=WEBHOOK,
    invalid={"enabled": NOT_A_FLAG},
    examples=[_CHANGED],
)
def change_webhook(_: Caller, given: Given[WebhookEndpoint]) -> Webhook:
    """Change an endpoint, or switch it off and on.

    What is left out stays as it is. One that was disabled is told what happens after it was
    enabled again.
    """
    return _known(given.parts.webhooks.change(given.found, Changes(**given.body), given.cause()))


@blueprint.operation(
    "DELETE /v1/webhooks/<webhook_id>",
    resource=load_any_webhook,
    reply=example("It is told nothing any more.", Removed, id=id_of("webhook")),
)
def delete_webhook(_: Caller, given: Given[WebhookEndpoint]) -> Removed:
    """Delete an endpoint.

    It is told nothing any more, and every other operation on it is 404. Deleting it again changes
    nothing.
    """
    return Removed(given.parts.webhooks.delete(given.found, given.cause()).id)


@blueprint.operation(
    "POST /v1/webhooks/<webhook_id>/rotate-secret", key=True, reply=WITH_SECRET, examples=[_CHANGED]
)
def rotate_webhook_secret(_: Caller, given: Given[WebhookEndpoint]) -> Answer:
    """Give an endpoint a new secret.

    For 24 hours what it is told is signed with both, the new one and the one before, so that you
    can change over without losing anything.
    """
    given.parts.webhook_key.require()  # Without the key there is no secret to show.
    rotate, cause = given.parts.webhooks.rotate_secret, given.cause()
    rotated, generation, replayed = rotate(given.found, given.key, cause)
    return Answer(_with_secret(rotated, generation), headers=replay_headers(replayed))


@blueprint.operation(
    "POST /v1/webhooks/<webhook_id>/test", reply=Shown(ACCEPTED, 202), errors="WEBHOOK_DISABLED"
)
def send_test_webhook(_: Caller, given: Given[WebhookEndpoint]) -> Answer:
    """Tell an endpoint a `webhook.test`.

    Whatever types it is told of. It is sent once; what came of it stands in the deliveries.
    """
    return _accepted(given.found.id, Asked(given.parts.webhooks.test(given.found, given.cause())))


@blueprint.operation(
    "GET /v1/webhooks/<webhook_id>/deliveries",
    query=DeliveryQuery,
    reply=example(
        "A page of deliveries.", DeliveryPage, data=[example_of(WebhookDelivery, error=None)]
    ),
    invalid={"per_page": "Must be a whole number from 1 to 100."},
)
def list_deliveries(caller: Caller, given: Given[WebhookEndpoint]) -> Page[WebhookDelivery]:
    """List what an endpoint was told, newest first.

    They are kept for 30 days.
    """
    query = given.query
    found, total = given.parts.webhook_deliveries.page(
        caller.organization_id, given.found.id, query.get("status"), part_of(query)
    )
    return show_page([*map(WebhookDelivery.of, found)], total, query)


@blueprint.operation(
    "GET /v1/webhooks/<webhook_id>/deliveries/<delivery_id>",
    reply=example("The delivery, with what is sent.", DeliveryWithBody, error=None),
)
def read_delivery(_: Caller, given: Given[Delivery]) -> DeliveryWithBody:
    """Read a delivery, with its body.

    What was sent at each attempt, and what has come of it.
    """
    return DeliveryWithBody.of(given.found, body=Raw(given.found.body))


@blueprint.operation(
    "POST /v1/webhooks/<webhook_id>/redeliver",
    body=RedeliverBody,
    key=True,
    reply=Shown(example("They will be delivered within seconds.", AskedAgain, has_more=False), 202),
    errors="WEBHOOK_DISABLED",
    invalid={"since": NOT_A_TIME},
)
def redeliver_failed(caller: Caller, given: Given[WebhookEndpoint]) -> Answer:
    """Tell an endpoint everything again that has failed or was cancelled.

    The oldest first, each with the same `webhook-id` and body, and with the repeats of a first
    delivery.
    """
    parts, owner, at = given.parts, caller.organization_id, given.found.id
    since = given.body["since"]

    def undelivered(most: int) -> Sequence[UUID]:
        # Or what was asked for before would seem to have failed, and be sent again and again.
        require_projected(parts.source, WebhookPlanner.name)
        return parts.webhook_deliveries.undelivered(owner, at, since, most)

    accepted, replayed = parts.webhooks.redeliver_failed(
        given.found, Failed(since, undelivered), given.key, given.cause()
    )
    return _accepted(at, AskedAgain(accepted.delivery_ids, accepted.has_more), replayed=replayed)


@blueprint.operation(
    "POST /v1/webhooks/<webhook_id>/deliveries/<delivery_id>/redeliver",
    key=True,
    reply=Shown(ACCEPTED, 202),
    errors="WEBHOOK_DISABLED",
)
def redeliver(caller: Caller, given: Given[Delivery]) -> Answer:
    """Tell an endpoint something again.

    With the same `webhook-id` and body, whether it was accepted or not, and with the repeats of a
    first delivery.
    """
    at, delivery_id = given.found.endpoint_id, given.found.id
    webhooks = given.parts.webhooks
    endpoint = webhooks.get(caller.organization_id, at)
    replayed = webhooks.redeliver(endpoint, delivery_id, given.key, given.cause())
    return _accepted(at, Asked(delivery_id), replayed=replayed)


def _location(webhook_id: UUID) -> str:
    return f"{reached(CURRENT.get().parts.settings.base)}/v1/webhooks/{webhook_id}"


def _accepted(webhook_id: UUID, data: Struct, *, replayed: bool = False) -> Answer:
    headers = {"Location": f"{_location(webhook_id)}/deliveries", **replay_headers(replayed)}
    return Answer(data, 202, headers)


def _shown(endpoint: WebhookEndpoint) -> Webhook | None:
    """Return an endpoint as partners see it; None if it was erased."""
    address, disabled = CURRENT.get().parts.webhooks.address(endpoint), endpoint.disabled
    if address is None:
        return None
    # Only a replay shows one that its organization has deleted.
    reason = "asked" if endpoint.is_deleted else disabled and disabled.reason
    return Webhook.of(
        endpoint,
        address,
        enabled=reason is None,
        disabled_reason=reason,
        created_at=format_time(endpoint.created_on),
    )


def _known(endpoint: WebhookEndpoint) -> Webhook:
    if (shown := _shown(endpoint)) is None:
        raise NotFound
    return shown


def _with_secret(endpoint: WebhookEndpoint, generation: Generation) -> WebhookWithSecret:
    secret = CURRENT.get().parts.webhook_signer.secret(endpoint.id, generation)
    if secret is None:  # Asked for again after its key was revoked.
        raise NotFound("This secret was revoked; rotate-secret with another key gives a new one.")
    return WebhookWithSecret(**asdict(_known(endpoint)), secret=secret)
