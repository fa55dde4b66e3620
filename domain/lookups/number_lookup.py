"""A single number lookup: answered and charged in one commit, or not at all."""

from collections.abc import Iterable
from dataclasses import field
from datetime import datetime
from typing import Literal
from uuid import UUID

import msgspec

from domain.accounts.paid_price import PaidPrice
from domain.accounts.refund_by_hand import Refundable, RefundByHand
from domain.cost import Cost
from domain.ids import derive_id
from domain.log.aggregate import Created, itself, sets
from domain.lookups.ports import Details, NumberFacts
from domain.personal import Sealed

Source = Literal["live", "cache"]


class PersonalAnswer(msgspec.Struct, frozen=True, omit_defaults=True):
    """The personal part of an answer, and what its request is known by; sealed in the event."""

    facts: NumberFacts
    told: Details | None = None
    max_age_s: int | None = None  # What a request with a key asked for.


class NumberLookup(Refundable):
    """One answer given to one organization."""

    TOPIC = "number_lookup"
    KIND = "lookup"

    class Answered(Created):
        """`price` is None when lookups were free at that time; `cost`, when it is not known.

        An answer from the cache has cost nothing.
        """

        TOPIC = "number_lookup.answered"
        IS_STEP = True
        SETS = sets("organization_id", answer=itself)

        organization_id: UUID
        source: Source
        as_of: datetime
        provider: str
        price: PaidPrice | None
        personal: Sealed
        cost: Cost | None = field(default=None, kw_only=True)

    class RefundedByHand(RefundByHand):
        TOPIC = "number_lookup.refunded_by_hand"

    answer: Answered

    def paid(self) -> Iterable[tuple[PaidPrice, int]]:
        return [(self.answer.price, 0)] if self.answer.price is not None else []


def number_lookup_id(organization_id: UUID, key: str) -> UUID:
    """Return the stream of an idempotent lookup.

    One attempt per key is enough: a lookup that fails appends nothing, so its key stays free.
    """
    return derive_id("number_lookup", organization_id, key, 1)
