"""Turns of processes at one wallet: advice that spares lost races. The versions go on to decide."""

import time
from collections.abc import Iterable, Sequence
from typing import Protocol
from uuid import UUID

SHARED_S = 1.0  # How long a wallet counts as shared after another process was seen to move it.


class Turns(Protocol):
    """Who is next at wallets that several processes move; each committer has one of its own.

    Never raises and never waits long: who gets no turn goes on without one.
    """

    def take(self, wallet_ids: Sequence[UUID]) -> bool:
        """Wait for one's turn at all of these wallets; tell whether it came."""
        ...

    def end(self) -> None:
        """Let the next process have its turn; without a turn nothing happens."""
        ...

    def close(self) -> None:
        """End, and let go of what turns are taken by."""
        ...


class NoTurns:
    """For who is alone, or where waiting for each other is no better than to lose a race."""

    def take(self, wallet_ids: Sequence[UUID]) -> bool:  # noqa: ARG002  # It is refused for any.
        """Refuse."""
        return False

    def end(self) -> None:
        """Nothing is held."""

    def close(self) -> None:
        """Nothing is held."""


class SharedWallets:
    """The wallets that other processes were lately seen to move, and the turns at them.

    While there is none, turns cost nothing.
    """

    def __init__(self, turns: Turns) -> None:
        self._turns = turns
        self._until: dict[UUID, float] = {}
        self._held: frozenset[UUID] = frozenset()
        self._unread: frozenset[UUID] = frozenset()

    def moved_by_another(self, wallet_id: UUID) -> None:
        """Count a wallet as shared for a while."""
        self._until[wallet_id] = time.monotonic() + SHARED_S

    def take_turn(self, wallet_ids: Iterable[UUID]) -> bool:
        """Wait for the turn at those that are shared; tell whether it came just now."""
        if not self._until:
            return False
        now = time.monotonic()
        self._until = {each: until for each, until in self._until.items() if until > now}
        shared = frozenset(wallet_ids) & self._until.keys()
        if shared <= self._held:
            return False
        self.end_turn()
        if not self._turns.take([*shared]):
            return False
        self._held = self._unread = shared
        return True

    def unread(self) -> Iterable[UUID]:
        """Return, once, the wallets of a turn that has come: they have to be read anew."""
        unread, self._unread = self._unread, frozenset()
        return unread

    def end_turn(self) -> None:
        """Let the next process have its turn."""
        if self._held:
            self._held = self._unread = frozenset()
            self._turns.end()

    def close(self) -> None:
        """Take no more turns."""
        self._turns.close()
