"""The wallets that the committer holds in memory; only its thread uses them."""

import time
from collections import OrderedDict
from collections.abc import Collection, Iterable
from contextlib import suppress
from datetime import datetime
from uuid import UUID

from domain.accounts.wallet import Wallet
from domain.log.log import Log

# About 1 KB each; above this number the least recently used wallet is dropped.
WALLETS_MAX = 16_384
SHARED_S = 1.0  # How long each batch reads a wallet again after another process changed it.


class WalletCache:
    """Wallets as this process knows them; other processes may have changed them since.

    `get` lends a wallet, which the borrower may change. `mark_committed` declares that all changes
    are in the log; `undo` takes back those to one wallet. Keys are the numbers of ids, because
    Python hashes and compares them without a call.
    """

    def __init__(self, log: Log) -> None:
        self._log = log
        self._wallets: OrderedDict[int, Wallet] = OrderedDict()
        self._stored: dict[int, Wallet] = {}  # Lent wallets, as the log had them.
        self._shared_until: dict[int, float] = {}  # Times of the monotonic clock.

    def get(self, wallet_id: UUID) -> Wallet | None:
        """Return the held wallet, or load it; None if it does not exist."""
        key = wallet_id.int
        wallet = self._wallets.get(key)
        if wallet is None:
            return self.refresh(wallet_id)
        self._wallets.move_to_end(key)
        if key not in self._stored:
            self._stored[key] = _copy_of(wallet)
        return wallet

    def peek(self, wallet_id: UUID, currency: str, at: datetime) -> int | None:
        """Return what can be spent as last committed, perhaps out of date; any thread may ask.

        Just when a wallet is lent it may be what the commit under way will leave.
        """
        held = self._stored.get(wallet_id.int) or self._wallets.get(wallet_id.int)
        if held is None or held.currency != currency:
            return None
        micros, limit = held.balance_micros, held.spending
        return micros if limit is None else min(micros, limit.left_micros(at))

    def reload(self, wallet_ids: Iterable[UUID]) -> None:
        """Read in one statement the wallets that are not held or that others recently changed.

        If that fails nothing is raised, because `get` reads each alone later.
        """
        now, unsure = time.monotonic(), list[UUID]()
        for each in wallet_ids:
            if each.int not in self._wallets or self._shared_until.get(each.int, 0.0) > now:
                unsure.append(each)
        if unsure:
            with suppress(Exception):
                self.catch_up({*unsure})

    def refresh(self, wallet_id: UUID) -> Wallet | None:
        self.catch_up([wallet_id])
        return self._wallets.get(wallet_id.int)

    def catch_up(self, wallet_ids: Collection[UUID]) -> set[UUID]:
        """Undo the changes to these wallets and read them; return those that others changed."""
        for wallet_id in wallet_ids:
            if wallet_id.int in self._stored:
                self.undo(wallet_id)
        found, moved = self._log.find_all(Wallet, wallet_ids), set[UUID]()
        for wallet_id in wallet_ids:
            wallet, known = found.get(wallet_id), self._wallets.get(wallet_id.int)
            if wallet is None:
                self._drop(wallet_id.int)
                continue
            if known is not None and wallet.version > known.version:
                moved.add(wallet_id)
                self._shared_until[wallet_id.int] = time.monotonic() + SHARED_S
            self._cache(wallet)
        return moved

    def mark_committed(self) -> None:
        """Treat every change of lent wallets as stored."""
        self._stored.clear()

    def undo(self, wallet_id: UUID) -> None:
        """Restore a wallet to its state before it was lent; the log may be ahead of that."""
        stored = self._stored.pop(wallet_id.int, None)
        if stored is None:
            self._drop(wallet_id.int)
        else:
            self._wallets[wallet_id.int] = stored

    def clear(self) -> None:
        for key in [*self._wallets]:
            self._drop(key)

    def _cache(self, wallet: Wallet) -> None:
        key = wallet.id.int
        self._wallets[key] = wallet
        self._stored[key] = _copy_of(wallet)
        self._wallets.move_to_end(key)
        if len(self._wallets) > WALLETS_MAX:
            self._drop(next(iter(self._wallets)))

    def _drop(self, key: int) -> None:
        for each in (self._wallets, self._stored, self._shared_until):
            each.pop(key, None)


def _copy_of(wallet: Wallet) -> Wallet:
    assert not wallet.pending_events, "a wallet without a commit in between"
    copied = object.__new__(Wallet)
    copied.__dict__.update(wallet.__dict__, _pending_events=[])
    return copied
