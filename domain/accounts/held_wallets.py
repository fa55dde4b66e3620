"""The wallets that the committer holds: a small LRU that only its thread touches."""

from collections import OrderedDict
from collections.abc import Iterable
from uuid import UUID

from domain.accounts.wallet import Wallet
from domain.log.log import Log

WALLETS_MAX = 16_384  # About 1 KB each; beyond it the coldest one is loaded again when needed.


_Balance = tuple[str | None, int]  # With the server that it was read from.


class WalletCache:
    """Wallets as this process knows them; another process may have moved them on.

    A wallet that is lent may be changed; `keep` says that all changes are in the log, `undo` takes
    those of one wallet back, so that only what is new has to be read after a race that was lost.
    """

    def __init__(self, log: Log) -> None:
        self._log = log
        self._wallets: OrderedDict[UUID, Wallet] = OrderedDict()
        self._stored: dict[UUID, Wallet] = {}  # Of those that were lent: as the log had them.
        self._balances: dict[UUID, _Balance] = {}  # Of all that are held: as the log had them.

    def get(self, wallet_id: UUID) -> Wallet | None:
        """Return the held wallet, or load it; None when there is none."""
        wallet = self._wallets.get(wallet_id)
        if wallet is None:
            return self.refresh(wallet_id)
        self._wallets.move_to_end(wallet_id)
        if wallet_id not in self._stored:
            self._stored[wallet_id] = _copy_of(wallet)
        return wallet

    def peek(self, wallet_id: UUID) -> int | None:
        """Return the balance as last committed, perhaps out of date; other threads may ask."""
        server, balance_micros = self._balances.get(wallet_id, (None, None))
        return balance_micros if server == self._log.server else None

    def read_from(self, wallet_ids: Iterable[UUID]) -> frozenset[str]:
        """Return the servers that these held wallets were read from."""
        held = (self._wallets[wallet_id].read_from for wallet_id in wallet_ids)
        return frozenset(server for server in held if server is not None)

    def refresh(self, wallet_id: UUID) -> Wallet | None:
        """Bring a wallet up to date with the log."""
        wallet = self._log.find(Wallet, wallet_id, after=self._wallets.get(wallet_id))
        if wallet is not None:
            self._wallets[wallet_id] = wallet
            self._stored[wallet_id] = _copy_of(wallet)
            self._balances[wallet_id] = (wallet.read_from, wallet.balance_micros)
            self._wallets.move_to_end(wallet_id)
            if len(self._wallets) > WALLETS_MAX:
                coldest, _ = self._wallets.popitem(last=False)
                self._stored.pop(coldest, None)
                self._balances.pop(coldest, None)
        return wallet

    def keep(self) -> None:
        """Take every change of what was lent for stored."""
        for wallet_id in self._stored:
            wallet = self._wallets[wallet_id]
            self._balances[wallet_id] = (wallet.read_from, wallet.balance_micros)
        self._stored.clear()

    def undo(self, wallet_id: UUID) -> None:
        """Give a wallet the state back that it had when it was lent; the log may be ahead of it."""
        stored = self._stored.pop(wallet_id, None)
        if stored is None:
            self._wallets.pop(wallet_id, None)
            self._balances.pop(wallet_id, None)
        else:
            self._wallets[wallet_id] = stored

    def catch_up(self, wallet_id: UUID) -> bool:
        """Undo what was lent, then read on; tell whether the log had moved."""
        if wallet_id in self._stored:
            self.undo(wallet_id)
        before = self._wallets.get(wallet_id)
        version = before.version if before is not None else 0
        after = self.refresh(wallet_id)
        return after is not None and after.version > version

    def clear(self) -> None:
        """Drop all wallets."""
        self._wallets.clear()
        self._stored.clear()
        self._balances.clear()


def _copy_of(wallet: Wallet) -> Wallet:
    assert not wallet.pending_events, "a wallet without a commit in between"
    copied = object.__new__(Wallet)
    copied.__dict__.update(wallet.__dict__, _pending_events=[])
    return copied
