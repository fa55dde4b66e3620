"""Refunds that an operator decides, as events on the stream of what was charged for.

Automatic refunds of a failure are on the same stream, so it bounds all refunds of a charge. What
decides on those is listed at `RefundReason` in `paid_price`.
"""

from abc import abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar, cast
from uuid import UUID

from domain.accounts.paid_price import GivenBack, PaidPrice, RefundReason, Repaying, Repayment
from domain.accounts.wallet import CHARGED_FOR, Charge, Metadata, Reference, Refund
from domain.cause import Cause
from domain.errors import NotFound, NotPossible
from domain.ids import derive_id
from domain.log.aggregate import ByOperator, Root
from domain.money import format_amount


class RefundByHand(Root.Event, Repaying, ByOperator):
    """An operator gave money back; saved together with the wallet's entry.

    `transaction_id` is that of the charge. Each kind of stream has a topic of its own for it.
    """

    WHY = "by_hand"

    organization_id: UUID
    transaction_id: UUID
    refund: Repayment
    reference: str
    reason: str

    def apply(self, aggregate: "Refundable") -> None:
        aggregate.by_hand = (*aggregate.by_hand, self)


@dataclass(frozen=True)
class HandRefund:
    """What an operator asks for; `amount_micros` is None for all that is left.

    `metadata` is that of the charge, so that the refund is listed with the same links.
    """

    transaction_id: UUID
    reference: str
    reason: str
    amount_micros: int | None
    metadata: Metadata


class Refundable(Root):
    """An aggregate that a wallet was charged for."""

    KIND: ClassVar[str]  # The type in the references of its charges and refunds.
    RefundedByHand: ClassVar[type[RefundByHand]]
    OWN: ClassVar[tuple[str, ...]] = ("organization_id",)

    organization_id: UUID
    by_hand = cast("tuple[RefundByHand, ...]", ())  # No annotation, so that it is not a field.

    @abstractmethod
    def paid(self) -> Iterable[tuple[PaidPrice, int]]:
        """Return its charges, each with what failures have given back of it."""

    def still_open(self) -> str | None:
        """Say why an automatic refund may still come; None when none can."""
        return None

    def refund_by_hand(self, request: HandRefund, cause: Cause) -> Refund | None:
        """Give money back, once per charge and reference; None if that was done before.

        Raises NotPossible for more than is left, while an automatic refund may still come, and for
        a reference that had another amount or reason.
        """
        if self._is_done(request):
            return None
        if (reason := self.still_open()) is not None:
            raise NotPossible(reason)
        price, left_micros = self._left(request.transaction_id)
        amount_micros = left_micros if request.amount_micros is None else request.amount_micros
        if not 0 < amount_micros <= left_micros:
            left = f"{format_amount(left_micros)} {price.currency}"
            message = f"no more than {left} is left of this charge" if left_micros else NOTHING_LEFT
            raise NotPossible(message)
        refund_id = derive_id("refund_by_hand", request.transaction_id, request.reference)
        back = Repayment(amount_micros, refund_id)
        self.record(
            self.RefundedByHand,
            cause,
            transaction_id=request.transaction_id,
            refund=back,
            reference=request.reference,
            reason=request.reason,
        )
        [entry] = self.credit(price, back, "by_hand", request.reason, request.metadata)
        return entry

    def debit(self, price: PaidPrice | None, description: str, metadata: Metadata) -> list[Charge]:
        """Return the entry of the wallet that pays a price; none for what is free."""
        if price is None:
            return []
        charge = Charge(
            transaction_id=price.transaction_id,
            kind=CHARGED_FOR[self.KIND],
            amount_micros=price.amount_micros,
            currency=price.currency,
            reference=Reference(self.KIND, str(self.id)),
            description=description,
            metadata=metadata,
        )
        return [charge]

    def credit(
        self,
        price: PaidPrice | None,
        back: Repayment | None,
        reason: RefundReason,
        description: str,
        metadata: Metadata,
    ) -> list[Refund]:
        """Return the entry of the wallet that gives something of a price back, if anything."""
        if price is None or back is None:
            return []
        refund = Refund(
            transaction_id=back.transaction_id,
            charge_id=price.transaction_id,
            amount_micros=back.amount_micros,
            currency=price.currency,
            reference=Reference(self.KIND, str(self.id)),
            description=description,
            reason=reason,
            metadata=metadata,
        )
        return [refund]

    def left(self) -> list[GivenBack]:
        """Return what a cancellation gives back: all that is left of each charge."""
        found = []
        for price, _ in self.paid():
            left_micros = self._left(price.transaction_id)[1]
            if left_micros:
                refund_id = derive_id("cancellation", price.transaction_id)
                found.append(GivenBack(left_micros, refund_id, price.transaction_id))
        return found

    def given_by_hand(self, transaction_id: UUID) -> int:
        by_hand = (each for each in self.by_hand if each.transaction_id == transaction_id)
        return sum(each.refund.amount_micros for each in by_hand)

    def done_by_hand(self, transaction_id: UUID, reference: str) -> RefundByHand | None:
        sought = (transaction_id, reference)
        return next((e for e in self.by_hand if (e.transaction_id, e.reference) == sought), None)

    def _is_done(self, request: HandRefund) -> bool:
        done = self.done_by_hand(request.transaction_id, request.reference)
        if done is None:
            return False
        same_amount = request.amount_micros in (None, done.refund.amount_micros)
        if not same_amount or request.reason != done.reason:
            other = "reason" if same_amount else "amount"
            raise NotPossible(f"the refund with reference {request.reference} has another {other}")
        return True

    def _left(self, transaction_id: UUID) -> tuple[PaidPrice, int]:
        for price, given_back_micros in self.paid():
            if price.transaction_id == transaction_id:
                given = given_back_micros + self.given_by_hand(transaction_id)
                return price, price.amount_micros - given
        raise NotFound(f"there is no charge {transaction_id}")


NOTHING_LEFT = "nothing is left of this charge: it has been refunded"
