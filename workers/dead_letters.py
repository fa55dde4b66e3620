"""The port of dead letters: messages that a queue has given up, and their way back."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol


@dataclass(frozen=True)
class DeadLetter:
    """The parts of a message that may be shown; other content could be anything, so it is not."""

    actor: str | None  # None: this release has no such actor.
    ids: list[str | int]
    died_at: datetime | None
    error: str


class DeadLetters(Protocol):
    """The dead letters of each queue. Every method raises when the broker cannot be reached."""

    def count(self, queue: str) -> int:
        """Return the number of dead letters; 0 for a queue that does not exist."""
        ...

    def read(self, queue: str) -> Sequence[DeadLetter]:
        """Read the oldest ones; they stay where they are."""
        ...

    def replay(self, queue: str, messages_max: int | None) -> tuple[int, int]:
        """Move dead letters back to their queue; return how many were moved and how many cannot be.

        A process that dies in between leaves one message twice, which is harmless.
        """
        ...

    def purge(self, queue: str) -> int:
        """Delete the dead letters for good; return how many."""
        ...
