"""What an organization owes for its active links of one calendar month (UTC)."""

from collections.abc import Sequence
from typing import Self
from uuid import UUID

from domain.accounts.price import Price
from domain.cause import Cause
from domain.ids import derive_id
from domain.log.aggregate import Created, Root


class MonthlyFee(Root):
    """Frozen as of the first instant of its month, charged then or later, once."""

    TOPIC = "monthly_fee"

    class Due(Created):
        """The links that were active at that instant, each for `fee_micros`; `month` as YYYY-MM."""

        TOPIC = "monthly_fee.due"

        organization_id: UUID
        month: str
        fee_micros: int
        link_ids: list[UUID]
        price: Price

        def apply(self, aggregate: "MonthlyFee") -> None:
            aggregate.due = self
            aggregate.is_charged = False

    class Charged(Root.Event):
        """Saved together with the one charge for all of it."""

        TOPIC = "monthly_fee.charged"

        organization_id: UUID
        month: str
        price: Price

        def apply(self, aggregate: "MonthlyFee") -> None:
            aggregate.is_charged = True

    due: Due
    is_charged: bool

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
        """Freeze what is owed; the derived id makes a second reckoning collide."""
        assert fee_micros > 0, fee_micros
        assert link_ids, month
        stream_id = monthly_fee_id(organization_id, month)
        amount_micros = fee_micros * len(link_ids)
        price = Price(amount_micros, currency, derive_id("transaction", stream_id))
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

    def note_charged(self, cause: Cause) -> None:
        """The wallet has paid; saved together with that charge."""
        assert not self.is_charged, self.id
        due = self.due
        facts = {"organization_id": due.organization_id, "month": due.month, "price": due.price}
        self.record(self.Charged, cause, **facts)


def monthly_fee_id(organization_id: UUID, month: str) -> UUID:
    """Return the stream of the fee of one organization and month."""
    return derive_id("monthly_fee", organization_id, month)
