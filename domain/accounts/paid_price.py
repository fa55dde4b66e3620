"""What was paid and what was paid back, each with its transaction in the wallet, and why."""

from collections.abc import Mapping
from typing import ClassVar, Literal, get_args
from uuid import UUID

import msgspec

from domain.errors import IncompleteNetworkAnswer
from domain.ids import derive_id
from domain.log.aggregate import Event

# Decided by `BulkJob.fail_items`; twice by `links/failing.py`; by `links/requested.py` and
# `BulkJob.cancel`; by `refund_by_hand.py`.
RefundReason = Literal[
    "lookup_unavailable", "provisioning_failed", "provisioning_error", "cancelled", "by_hand"
]
REFUND_REASONS: tuple[RefundReason, ...] = get_args(RefundReason)


class PaidPrice(msgspec.Struct, frozen=True):
    """What was paid, and the transaction that paid for it."""

    amount_micros: int
    currency: str
    transaction_id: UUID


def price_of(stream_id: UUID, amount_micros: int, currency: str) -> PaidPrice | None:
    """Return what a stream costs, with the one transaction that pays it; None if it is free."""
    transaction_id = derive_id("transaction", stream_id)
    return PaidPrice(amount_micros, currency, transaction_id) if amount_micros else None


class Repayment(msgspec.Struct, frozen=True):
    """What a failure paid back, and the transaction that did so."""

    amount_micros: int
    transaction_id: UUID


class GivenBack(Repayment, frozen=True):
    """What was paid back of one of several charges."""

    charge_id: UUID


class Repaying(Event):
    """An event whose commit gives money back; the refunds follow it in the log.

    It has a `refund` or `refunds`. `WHY` is their reason; without it, the event's `code` tells it.
    """

    WHY: ClassVar[RefundReason | None] = None

    def reasons(self) -> Mapping[UUID, RefundReason]:
        """Return the reason of each refund, by the refund's transaction."""
        facts = vars(self)
        given = facts["refunds"] if "refunds" in facts else [facts["refund"]]
        return {e.transaction_id: self.WHY or refund_reason(facts["code"]) for e in given if e}


def refund_reason(code: str) -> RefundReason:
    """Return the reason of a refund after the network failed with this error code."""
    failed = code == IncompleteNetworkAnswer.code
    return "provisioning_failed" if failed else "provisioning_error"
