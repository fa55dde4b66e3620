"""What an organization may spend in a calendar month (UTC), and what it has spent in it."""

from datetime import datetime

import msgspec

from domain.errors import SpendingLimit
from domain.months import month_of


class Spending(msgspec.Struct, frozen=True):
    """A limit and what counts against it, as of the newest entry of a wallet.

    `spent_micros` is what was charged in the month less what was refunded in it. It is negative if
    the refunds of earlier months' charges are larger. Each entry carries it, so no process has to
    add up entries.
    """

    limit_micros: int
    month: str
    spent_micros: int

    def at(self, moment: datetime) -> "Spending":
        """Return the state at a moment; only a later month begins with nothing spent."""
        month = month_of(moment)
        return self if month <= self.month else Spending(self.limit_micros, month, 0)

    def after(self, change_micros: int, moment: datetime) -> "Spending":
        """Return the state after an entry that changed the balance by `change_micros`."""
        now = self.at(moment)
        return Spending(now.limit_micros, now.month, now.spent_micros - change_micros)

    def left_micros(self, moment: datetime) -> int:
        """Return what may still be spent; below zero when the limit was lowered below that."""
        return self.limit_micros - self.at(moment).spent_micros

    def refuse_beyond(self, amount_micros: int, currency: str, moment: datetime) -> None:
        if amount_micros > self.left_micros(moment):
            spent_micros = self.at(moment).spent_micros
            raise SpendingLimit(amount_micros, spent_micros, self.limit_micros, currency)
