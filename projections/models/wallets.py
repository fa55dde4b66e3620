"""Balances: the newest entry of each wallet."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from sqlalchemy import BigInteger, Column, Connection, String, Table, Uuid, bindparam, select

from domain.accounts.wallet import Wallet
from domain.log.log import Recorded
from projections.engine.inserting import upsert
from projections.engine.read_model import ReadModel


@dataclass(frozen=True, slots=True)
class WalletRow:
    """One wallet; `sequence` is the number of its transactions."""

    organization_id: UUID
    currency: str
    balance_micros: int
    sequence: int


class Wallets(ReadModel):
    """One row per wallet."""

    name = "wallets"
    uses = (Wallet.Event,)

    def build(self) -> Sequence[Table]:
        self.rows = self.table(
            "wallets",
            Column("organization_id", Uuid, primary_key=True),
            Column("currency", String, nullable=False),
            Column("balance_micros", BigInteger, nullable=False),
            Column("sequence", BigInteger, nullable=False),
        )
        organization_id = self.rows.c.organization_id
        # Built once, because every charged lookup reads one row with it.
        self._one = select(self.rows).where(organization_id == bindparam("organization"))
        return [self.rows]

    def project(self, connection: Connection, batch: Sequence[Recorded]) -> None:
        """Write the last state of each wallet in the batch; each entry has its balance."""
        # Keyed by int, because UUIDs are hashed by slow Python code.
        newest: dict[int, Wallet.Event] = {}
        for recorded in batch:
            event = recorded.event
            if isinstance(event, Wallet.Event):
                newest[event.organization_id.int] = event
        upsert(connection, self.rows, [_row(Wallet.after(event)) for event in newest.values()])

    def get(self, connection: Connection, organization_id: UUID) -> WalletRow | None:
        row = connection.execute(self._one, {"organization": organization_id}).one_or_none()
        return WalletRow(*row) if row else None


def _row(wallet: Wallet) -> dict[str, Any]:
    return {
        "organization_id": wallet.organization_id,
        "currency": wallet.currency,
        "balance_micros": wallet.balance_micros,
        "sequence": wallet.sequence,
    }
