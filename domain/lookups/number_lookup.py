"""A single number lookup: answered and charged in one commit, or not at all."""

from datetime import datetime
from typing import Literal, Self
from uuid import UUID

import msgspec

from domain.accounts.paid_price import PaidPrice
from domain.cause import Cause
from domain.ids import derive_id
from domain.log.aggregate import Created, Root
from domain.lookups.ports import NumberFacts
from domain.personal import Sealed

Source = Literal["live", "cache"]


class PersonalAnswer(msgspec.Struct, frozen=True):
    """The personal part of an answer; sealed inside the event."""

    facts: NumberFacts


class NumberLookup(Root):
    """One answer given to one organization."""

    TOPIC = "number_lookup"

    class Answered(Created):
        """`price` is None when lookups were free at that time."""

        TOPIC = "number_lookup.answered"
        IS_STEP = True

        organization_id: UUID
        source: Source
        as_of: datetime
        provider: str
        price: PaidPrice | None
        personal: Sealed

        def apply(self, aggregate: "NumberLookup") -> None:
            aggregate.answer = self

    answer: Answered

    @classmethod
    def give(  # noqa: PLR0913  # An event is whole: each argument is one of its facts.
        cls,
        stream_id: UUID,
        cause: Cause,
        *,
        organization_id: UUID,
        source: Source,
        as_of: datetime,
        provider: str,
        price: PaidPrice | None,
        personal: Sealed,
    ) -> Self:
        """Give the answer; saved together with its charge."""
        return cls.begin(
            cls.Answered,
            cause,
            stream_id,
            organization_id=organization_id,
            source=source,
            as_of=as_of,
            provider=provider,
            price=price,
            personal=personal,
        )


def number_lookup_id(organization_id: UUID, key: str) -> UUID:
    """Return the stream of an idempotent lookup.

    A lookup that fails appends nothing, so its key stays free. So one attempt per key is enough.
    """
    return derive_id("number_lookup", organization_id, key, 1)
