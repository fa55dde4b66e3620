"""What all wallets have in common: the one currency of the log."""

from typing import Self
from uuid import UUID

from domain.cause import Cause
from domain.ids import derive_id
from domain.log.aggregate import Created, Root


class Ledger(Root):
    """Opened once, in the commit of the first wallet or monthly fee: its one stream is the lock.

    Two processes with different settings cannot both be the first.
    """

    TOPIC = "ledger"

    class Opened(Created):
        TOPIC = "ledger.opened"

        currency: str

        def apply(self, aggregate: "Ledger") -> None:
            aggregate.currency = self.currency

    currency: str

    @classmethod
    def open(cls, currency: str, cause: Cause) -> Self:
        """Fix the currency; the derived id makes a second one collide."""
        return cls.begin(cls.Opened, cause, ledger_id(), currency=currency)


def ledger_id() -> UUID:
    """Return the stream of the one ledger of a log."""
    return derive_id("ledger")
