"""What something cost and what came back, each with the transaction that the wallet books it as."""

from uuid import UUID

import msgspec


class Price(msgspec.Struct, frozen=True):
    """What was paid, and the transaction that paid for it."""

    amount_micros: int
    currency: str
    transaction_id: UUID


class Repayment(msgspec.Struct, frozen=True):
    """What a failure gave back, and the transaction that gave it."""

    amount_micros: int
    transaction_id: UUID
