"""What the canonical examples are made of: one stream, its moment and its money."""

from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from domain.accounts.paid_price import PaidPrice
from domain.log.aggregate import Event
from domain.personal import Sealed

ORGANIZATION = UUID("11111111-1111-4111-8111-111111111111")
STREAM = UUID("22222222-2222-4222-8222-222222222222")
TRANSACTION = UUID("33333333-3333-5333-8333-333333333333")
CHARGE = UUID("44444444-4444-5444-8444-444444444444")
AT = datetime(2026, 3, 1, 12, 30, 15, 123456, tzinfo=UTC)
SEALED = Sealed("2026-03", bytes(range(28)))
PRICE = PaidPrice(5_000, "EUR", TRANSACTION)
WHOLE_SECOND = AT.replace(microsecond=0)  # Written without a fraction.


def event(event_class: Any, /, version: int = 2, at: datetime = AT, **facts: Any) -> Event:
    made: Event = event_class(
        originator_id=STREAM,
        originator_version=version,
        timestamp=at,
        request_id="request-ä€😀",
        **facts,
    )
    return made


def created(event_class: type[Event], aggregate_topic: str, /, **facts: Any) -> Event:
    return event(event_class, 1, originator_topic=aggregate_topic, **facts)
