"""How the plain service takes money: in a transaction, or all in one statement."""

from dataclasses import dataclass
from datetime import datetime
from typing import Protocol
from uuid import UUID

import asyncpg

KEY = "transactions_key"

PAY = """
UPDATE wallets SET balance_micros = balance_micros - $2
WHERE organization_id = $1 AND balance_micros >= $2 RETURNING balance_micros
"""
NOTE = """
INSERT INTO transactions VALUES
($1, $2, 'lookup', $3, $4, 'lookup', $5, 'Number lookup', $6, $7, $8, $9)
"""
PAY_AND_NOTE = """
WITH paid AS (
    UPDATE wallets SET balance_micros = balance_micros - $3
    WHERE organization_id = $2 AND balance_micros >= $3 RETURNING balance_micros
)
INSERT INTO transactions
SELECT $1, $2, 'lookup', $3, balance_micros, 'lookup', $4, 'Number lookup', $5, $6, $7, $8 FROM paid
RETURNING 1
"""


@dataclass(frozen=True, slots=True)
class Entry:
    """A charge; with a key the answer is kept, to be given again."""

    id: UUID
    organization_id: UUID
    price_micros: int
    lookup_id: UUID
    request_id: str
    at: datetime
    key: str | None
    answer: bytes | None


class Charging(Protocol):
    """Takes the money of an entry and notes it, on a connection of the pool."""

    async def __call__(self, pool: asyncpg.Pool, entry: Entry) -> bool:
        """Tell whether it was paid; raises asyncpg.UniqueViolationError for a key that is taken."""
        ...


async def in_a_transaction(pool: asyncpg.Pool, entry: Entry) -> bool:
    """Charge as most services would: BEGIN, UPDATE, INSERT, COMMIT."""
    async with pool.acquire() as connection, connection.transaction():
        left = await connection.fetchval(PAY, entry.organization_id, entry.price_micros)
        if left is None:
            return False
        await connection.execute(
            NOTE,
            entry.id,
            entry.organization_id,
            entry.price_micros,
            left,
            entry.lookup_id,
            entry.request_id,
            entry.at,
            entry.key,
            entry.answer,
        )
        return True


async def in_one_statement(pool: asyncpg.Pool, entry: Entry) -> bool:
    """Charge as an engineer would who has tuned it."""
    async with pool.acquire() as connection:
        paid = await connection.fetchval(
            PAY_AND_NOTE,
            entry.id,
            entry.organization_id,
            entry.price_micros,
            entry.lookup_id,
            entry.request_id,
            entry.at,
            entry.key,
            entry.answer,
        )
        return paid is not None
