"""What was paid and what was paid back, each with its transaction in the wallet."""

from uuid import UUID

import msgspec


class PaidPrice(msgspec.Struct, frozen=True):
    """What was paid, and the transaction that paid for it."""

    amount_micros: int
    currency: str
    transaction_id: UUID


class Repayment(msgspec.Struct, frozen=True):
    """What a failure paid back, and the transaction that did so."""

    amount_micros: int
    transaction_id: UUID
