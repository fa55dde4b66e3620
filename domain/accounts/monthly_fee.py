"""What an organization owes for its active links of one calendar month (UTC).

`monthly_billing` freezes and charges it; `workers/fees.py` says when.
"""

from collections.abc import Iterable, Sequence
from typing import Self
from uuid import UUID

from domain.accounts.paid_price import PaidPrice
from domain.accounts.refund_by_hand import Refundable, RefundByHand
from domain.cause import Cause
from domain.ids import derive_id
from domain.log.aggregate import Created, Root, itself, sets


class MonthlyFee(Refundable):
    """An amount frozen as of the first instant of its month, and charged once, then or later."""

    TOPIC = "monthly_fee"
    KIND = "monthly_fee"

    class Due(Created):
        """The links that were active at that instant, each for `fee_micros`; `month` as YYYY-MM."""

        TOPIC = "monthly_fee.due"
        SETS = sets("organization_id", due=itself)

        organization_id: UUID
        month: str
        fee_micros: int
        link_ids: list[UUID]
        price: PaidPrice

    class Charged(Root.Event):
        """Saved together with the one charge for the whole fee."""

        TOPIC = "monthly_fee.charged"
        SETS = sets(is_charged=True)

        organization_id: UUID
        month: str
        price: PaidPrice

    class RefundedByHand(RefundByHand):
        TOPIC = "monthly_fee.refunded_by_hand"

    due: Due
    is_charged: bool = False

    @classmethod
    def fall_due(  # noqa: PLR0913  # An event is whole: each argument is one of its facts.
        cls,
        organization_id: UUID,
        month: str,
        cause: Cause,
        *,
        fee_micros: int,
        link_ids: Sequence[UUID],
        currency: str,
    ) -> Self:
        """Freeze what is owed; freezing it twice collides, because the id is derived."""
        assert fee_micros > 0, fee_micros
        assert link_ids, month
        stream_id = MonthlyFee.id_of(organization_id, month)
        amount_micros = fee_micros * len(link_ids)
        price = PaidPrice(amount_micros, currency, derive_id("transaction", stream_id))
        return cls.begin(
            cls.Due,
            cause,
            stream_id,
            organization_id=organization_id,
            month=month,
            fee_micros=fee_micros,
            link_ids=list(link_ids),
            price=price,
        )

    def record_charged(self, cause: Cause) -> None:
        """Note that the wallet has paid; saved together with the charge."""
        assert not self.is_charged, self.id
        self.record(self.Charged, cause, month=self.due.month, price=self.due.price)

    def paid(self) -> Iterable[tuple[PaidPrice, int]]:
        return [(self.due.price, 0)] if self.is_charged else []
