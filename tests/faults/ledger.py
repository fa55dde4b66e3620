"""What clients were promised: every reply of success, with what it says about money."""

import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from threading import Lock
from typing import Any, Literal

Kind = Literal[
    "lookup",
    "unkeyed lookup",
    "job",
    "cancel",
    "link",
    "topup",
    "removal",
    "status",
    "deposit",
    "fees",
]


@dataclass
class Promise:
    """One reply of success. Moments are seconds of the monotonic clock, amounts micro-units."""

    kind: Kind
    id: str
    key: str
    amount_micros: int
    began_at: float
    request: Any = None
    transaction_id: str = ""
    answered_at: float = field(default_factory=time.monotonic)


class Ledger:
    """All promises of a load, and what was seen that must never be seen."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._promises: list[Promise] = []
        self.surprises: list[str] = []  # Replies that no fault excuses.
        self.refusals: dict[str, int] = {}  # Refusals and outages that clients bore, by what.
        self.unknown_lookups = 0  # Without a key and without a reply: charged or not.

    def promise(self, promise: Promise) -> None:
        with self._lock:
            self._promises.append(promise)

    def surprise(self, what: str) -> None:
        with self._lock:
            self.surprises.append(what)

    def refused(self, what: str) -> None:
        with self._lock:
            self.refusals[what] = self.refusals.get(what, 0) + 1

    def lost_sight(self) -> None:
        with self._lock:
            self.unknown_lookups += 1

    def of(self, *kinds: Kind) -> list[Promise]:
        with self._lock:
            return [promise for promise in self._promises if promise.kind in kinds]

    def since(self, moment: float, kinds: Iterable[Kind]) -> set[Kind]:
        """Return of these kinds those that have succeeded in a request begun after a moment."""
        wanted = set(kinds)
        with self._lock:
            return {p.kind for p in self._promises if p.kind in wanted and p.began_at >= moment}
