"""What was paid and what was paid back, each with its transaction in the wallet, and why."""

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Literal, get_args
from uuid import UUID

import msgspec

from domain.errors import IncompleteNetworkAnswer
from domain.log.aggregate import Event

# Decided by `BulkJob.fail_items`; twice by `links/failing.py`; by `links/end_link.py` and
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


class Repayment(msgspec.Struct, frozen=True):
    """What a failure paid back, and the transaction that did so."""

    amount_micros: int
    transaction_id: UUID


class GivenBack(Repayment, frozen=True):
    """What was paid back of one of several charges."""

    charge_id: UUID


class Repaying(Event):
    """An event whose commit gives money back; the refunds follow it in the log."""

    @abstractmethod
    def reasons(self) -> Mapping[UUID, RefundReason]:
        """Return the reason of each refund, by the refund's transaction."""


def refund_reason(code: str) -> RefundReason:
    """Return the reason of a refund after the network failed with this error code."""
    failed = code == IncompleteNetworkAnswer.code
    return "provisioning_failed" if failed else "provisioning_error"


def reasons_of(
    refunds: Sequence[Repayment | None], reason: RefundReason
) -> Mapping[UUID, RefundReason]:
    """Give all refunds that are not None the same reason."""
    return {each.transaction_id: reason for each in refunds if each is not None}
