"""The wallets that the committer holds: a small LRU that only its thread touches."""

from collections import OrderedDict
from uuid import UUID

from domain.application import Log
from domain.wallet import Wallet
from domain.wallet_snapshot import INTERVAL_EVENTS

WALLETS_MAX = 1_024  # About 1 KB each; beyond it the coldest one is loaded again when needed.


class WalletCache:
    """Wallets as this process knows them; another process may have moved them on."""

    def __init__(self, log: Log) -> None:
        self._log = log
        self._wallets: OrderedDict[UUID, Wallet] = OrderedDict()
        self._snapshot_versions: dict[UUID, int] = {}

    def get(self, wallet_id: UUID) -> Wallet | None:
        """Return the held wallet, or load it; None when there is none."""
        wallet = self._wallets.get(wallet_id)
        if wallet is None:
            return self.refresh(wallet_id)
        self._wallets.move_to_end(wallet_id)
        return wallet

    def refresh(self, wallet_id: UUID) -> Wallet | None:
        """Bring a wallet up to date with the log."""
        wallet = self._log.find(Wallet, wallet_id, after=self._wallets.get(wallet_id))
        if wallet is not None:
            self._wallets[wallet_id] = wallet
            self._wallets.move_to_end(wallet_id)
            if len(self._wallets) > WALLETS_MAX:
                coldest, _ = self._wallets.popitem(last=False)
                self._snapshot_versions.pop(coldest, None)
        return wallet

    def due_for_snapshot(self, wallet_id: UUID) -> Wallet | None:
        """Return a held wallet that has come far since its last snapshot of this process."""
        wallet = self._wallets.get(wallet_id)
        if wallet is None:
            return None
        if wallet.version - self._snapshot_versions.get(wallet_id, 0) < INTERVAL_EVENTS:
            return None
        self._snapshot_versions[wallet_id] = wallet.version
        return wallet

    def forget(self, wallet_id: UUID) -> None:
        """Drop a wallet whose state may not be that of the log."""
        self._wallets.pop(wallet_id, None)

    def clear(self) -> None:
        """Drop all wallets."""
        self._wallets.clear()
