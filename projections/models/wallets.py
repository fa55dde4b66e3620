"""Balances: the newest entry of each wallet."""

from collections.abc import Sequence
from uuid import UUID

from msgspec import Struct
from sqlalchemy import Connection

from domain.accounts.wallet import Wallet
from domain.log.log import Recorded
from projections.engine.read_model import Snapshot


class WalletRow(Struct, frozen=True):
    """One wallet; `sequence` is the number of its transactions."""

    organization_id: UUID
    currency: str
    balance_micros: int
    sequence: int


class Wallets(Snapshot[WalletRow]):
    """One row per wallet."""

    name = "wallets"
    uses = (Wallet.Event,)
    of_kind, row, key = Wallet, WalletRow, "organization_id"

    def project(self, connection: Connection, batch: Sequence[Recorded]) -> None:
        """Write the last state of each wallet in the batch; each event has all of it."""
        # Keyed by int, because UUIDs are hashed by slow Python code.
        newest = {e.organization_id.int: e for _, e in batch if isinstance(e, Wallet.Event)}
        self.write(connection, [*map(Wallet.after, newest.values())])
