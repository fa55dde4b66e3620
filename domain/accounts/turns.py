"""Turns of processes at a shared wallet. They only avoid lost races; versions still decide."""

import time
from collections.abc import Iterable, Sequence
from typing import Protocol
from uuid import UUID

CONTENDED_S = 1.0  # How long turns are taken at a wallet that a batch has lost twice in a row.


class Turns(Protocol):
    """Decides which process is next at shared wallets; each committer has its own Turns.

    Never raises and never waits long; a process that gets no turn goes on without one.
    """

    def take(self, wallet_ids: Sequence[UUID]) -> bool:
        """Wait for a turn at all of these wallets; tell whether it came."""
        ...

    def end(self) -> None:
        """End the turn, so that the next process has its own; without a turn nothing happens."""
        ...

    def close(self) -> None:
        """Release the turn and whatever turns need."""
        ...


class NoTurns:
    """No turns: for a process that is alone, or where waiting costs as much as a lost race."""

    def take(self, wallet_ids: Sequence[UUID]) -> bool:  # noqa: ARG002  # No wallet has turns.
        """Return False: there is no turn."""
        return False

    def end(self) -> None:
        """Do nothing: no turn is held."""

    def close(self) -> None:
        """Do nothing: no turn is held."""


class ContendedWallets:
    """The wallets at which races were lost twice in a row, and the turns at them.

    While there are none, turns cost nothing.
    """

    def __init__(self, turns: Turns) -> None:
        self._turns = turns
        self._until: dict[UUID, float] = {}
        self._held: frozenset[UUID] = frozenset()

    def add(self, wallet_ids: Iterable[UUID]) -> None:
        """Take turns at these wallets for CONTENDED_S."""
        self._until |= dict.fromkeys(wallet_ids, time.monotonic() + CONTENDED_S)

    def take_turn(self, wallet_ids: Iterable[UUID]) -> bool:
        """Wait for a turn at the contended ones; tell whether a new turn came."""
        if not self._until:
            return False
        now = time.monotonic()
        self._until = {each: until for each, until in self._until.items() if until > now}
        contended = frozenset(wallet_ids) & self._until.keys()
        if contended <= self._held:
            return False
        self.end_turn()
        if self._turns.take([*contended]):
            self._held = contended
        return bool(self._held)

    def end_turn(self) -> None:
        """End the turn, so that the next process has its own."""
        if self._held:
            self._held = frozenset()
            self._turns.end()

    def close(self) -> None:
        """Take no more turns."""
        self._turns.close()
