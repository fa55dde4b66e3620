"""The replies about webhook endpoints and what they were told, with examples."""

from typing import Annotated, Final, get_args
from uuid import UUID

from msgspec import Struct

from app.http.edge.paging import Page, PageMeta
from app.http.edge.replies import (
    DELIVERY_ID,
    META,
    MORE_MAY_COME,
    WEBHOOK_ID,
    Moment,
    Reply,
    format_time,
    means,
    one_of,
    time_or_null,
)
from domain.webhooks.endpoint import Address, DisabledReason, WebhookEndpoint
from domain.webhooks.messages import TEST, TYPES
from domain.webhooks.ports import Delivery, DeliveryStatus

TYPE: Final = one_of("WebhookType", [*TYPES, TEST], MORE_MAY_COME)
STATUS: Final = one_of("DeliveryStatus", get_args(DeliveryStatus), MORE_MAY_COME)
REASON: Final = one_of("DisabledReason", get_args(DisabledReason), MORE_MAY_COME)


class Webhook(Struct):
    """An endpoint that is told what happens."""

    id: Annotated[UUID, means("The endpoint.")]
    url: Annotated[str, means("Where it is.", format="uri")]
    description: Annotated[str | None, means("Your words for it.")]
    events: Annotated[
        list[Annotated[str, means(**TYPE)]] | None,
        means("The types that it is told of; null: all, also later ones."),
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


class WebhookDelivery(Struct):
    """An event as it is told to one endpoint."""

    id: Annotated[UUID, means("The `webhook-id` of each attempt.")]
    type: Annotated[str, means("What happened.", **TYPE)]
    status: Annotated[
        str,
        means(
            "`pending` until it was accepted (`delivered`), given up (`failed`), or its endpoint "
            "was disabled or deleted (`cancelled`).",
            **STATUS,
        ),
    ]
    position: Annotated[int, means("The `data.position` of its body.")]
    attempts: Annotated[int, means("How often it was tried.")]
    response_status: Annotated[
        int | None, means("What was answered last; null: nothing.", example=200)
    ]
    error: Annotated[
        str | None,
        means("Why there was no answer, such as `timeout` or `tls_failed`.", example="timeout"),
    ]
    duration_ms: Annotated[int | None, means("How long the last attempt took.")]
    created_at: Annotated[Moment, means("When it was planned (UTC).")]
    attempted_at: Annotated[Moment | None, means("When it was tried last (UTC).")]
    next_attempt_at: Annotated[Moment | None, means("When it is tried next (UTC).")]


class WebhookReply(Reply[Webhook]):
    """The endpoint."""


class WebhookListReply(Reply[list[Webhook]]):
    """All endpoints, oldest first."""


class WebhookSecretReply(Reply[WebhookWithSecret]):
    """The endpoint with its secret, which is shown only now."""


class RemovedReply(Reply[Removed]):
    """It is told nothing any more."""


class AskedReply(Reply[Asked]):
    """It will be delivered within seconds."""


class DeliveryPage(Page[WebhookDelivery]):
    """Deliveries."""


class DeliveryPageReply(Reply[DeliveryPage]):
    """A page of deliveries."""


def show_webhook(endpoint: WebhookEndpoint, address: Address) -> Webhook:
    """Return an endpoint as partners see it."""
    return Webhook(
        id=endpoint.id,
        url=address.url,
        description=address.description,
        events=endpoint.events,
        enabled=endpoint.disabled is None,
        disabled_reason=None if endpoint.disabled is None else endpoint.disabled.reason,
        created_at=format_time(endpoint.registered.timestamp),
    )


def show_delivery(delivery: Delivery) -> WebhookDelivery:
    """Return a delivery as partners see it."""
    return WebhookDelivery(
        id=delivery.id,
        type=delivery.type,
        status=delivery.status,
        position=delivery.position,
        attempts=delivery.attempts,
        response_status=delivery.response_status,
        error=delivery.error,
        duration_ms=delivery.duration_ms,
        created_at=format_time(delivery.created_at),
        attempted_at=time_or_null(delivery.attempted_at),
        next_attempt_at=time_or_null(delivery.next_attempt_at),
    )


_ENDPOINT: Final = Webhook(
    id=WEBHOOK_ID,
    url="https://hooks.partner.example/carrier",
    description="Production",
    events=["link.activated", "job.finished"],
    enabled=True,
    disabled_reason=None,
    created_at="2026-11-21T03:04:05.100Z",
)
WEBHOOK: Final = WebhookReply(data=_ENDPOINT, meta=META)
WEBHOOKS: Final = WebhookListReply(data=[_ENDPOINT], meta=META)
WITH_SECRET: Final = WebhookSecretReply(
    data=WebhookWithSecret(
        WEBHOOK_ID,
        _ENDPOINT.url,
        _ENDPOINT.description,
        _ENDPOINT.events,
        _ENDPOINT.enabled,
        None,
        _ENDPOINT.created_at,
        secret="whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSwAAAAAAAAAAA=",  # noqa: S106  # An example.
    ),
    meta=META,
)
REMOVED: Final = RemovedReply(data=Removed(WEBHOOK_ID), meta=META)
ASKED: Final = AskedReply(data=Asked(DELIVERY_ID), meta=META)
DELIVERIES: Final = DeliveryPageReply(
    data=DeliveryPage(
        [
            WebhookDelivery(
                DELIVERY_ID,
                "link.activated",
                "pending",
                position=4711,
                attempts=1,
                response_status=503,
                error=None,
                duration_ms=112,
                created_at="2026-11-21T03:04:05.100Z",
                attempted_at="2026-11-21T03:04:05.300Z",
                next_attempt_at="2026-11-21T03:04:10.300Z",
            )
        ],
        PageMeta(total=1, per_page=50, current_page=1, last_page=1),
    ),
    meta=META,
)
