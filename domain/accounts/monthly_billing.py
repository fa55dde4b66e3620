"""The two steps of a monthly fee: what is due is frozen, then the wallet pays it."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from domain.accounts.committer import Committer
from domain.accounts.currency import Currency
from domain.accounts.monthly_fee import MonthlyFee
from domain.accounts.organization import Organization
from domain.accounts.wallet import Charge
from domain.cause import Cause
from domain.errors import Conflict
from domain.log.aggregate import Event
from domain.log.log import as_of
from domain.money import format_amount
from domain.months import first_instant

ActiveAt = Callable[[datetime], Sequence[UUID]]  # Returns the links that were active at a moment.


@dataclass(frozen=True)
class MonthlyBilling:
    """Freezes and charges fees; both are safe to repeat, in any number of processes at once."""

    committer: Committer
    currency: Currency

    def freeze(
        self, history: Sequence[Event], month: str, active_at: ActiveAt, cause: Cause
    ) -> None:
        """Record what an organization owes for a month, if it owes anything.

        `history` is all events of the organization. If another process was first, it computed the
        same fee. Raises WrongCurrency, because a fee in another currency could never be charged.
        """
        moment = first_instant(month)
        organization = as_of(Organization, history, moment)
        if organization is None or organization.status != "active":
            return
        fee_micros = organization.monthly_link_fee_micros
        link_ids = active_at(moment) if fee_micros else ()
        if not link_ids:
            return
        owner, currency = organization.id, self.currency.code
        facts: dict[str, Any] = {"fee_micros": fee_micros, "link_ids": link_ids}
        with suppress(Conflict):
            self.currency.append(
                lambda: [MonthlyFee.fall_due(owner, month, cause, currency=currency, **facts)],
                cause,
            )

    def charge(self, fee: MonthlyFee, cause: Cause) -> bool:
        """Let the wallet pay a frozen fee; False when it has been paid already.

        Raises InsufficientBalance, BillingNotConfigured without a wallet, ServiceUnavailable.
        """
        if fee.is_charged:
            return False
        fee.record_charged(cause)
        owner = fee.due.organization_id
        try:
            self.committer.commit_entries(owner, _charges_of(fee), cause, fee)
        except Conflict:
            return False  # Only a charge can follow `Due`, so another process was first.
        return True


def _charges_of(fee: MonthlyFee) -> list[Charge]:
    due = fee.due
    metadata = {
        "month": due.month,
        "charged_link_ids": [str(link_id) for link_id in due.link_ids],
        "fee_per_link": format_amount(due.fee_micros),
    }
    return fee.debit(due.price, f"Monthly link fee {due.month}", metadata)
