"""The ledger fixes the one currency of a log, which all wallets share."""

from typing import Self
from uuid import UUID

from domain.cause import Cause
from domain.ids import derive_id
from domain.log.aggregate import Created, Root


class Ledger(Root):
    """Opened once, in the commit of the first wallet or monthly fee.

    There is one stream for it, so two processes with different settings cannot both be first.
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
        """Fix the currency; a second ledger collides, because its id is derived."""
        return cls.begin(cls.Opened, cause, ledger_id(), currency=currency)


def ledger_id() -> UUID:
    """Return the stream of the log's only ledger."""
    return derive_id("ledger")
