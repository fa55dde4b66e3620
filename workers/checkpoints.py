"""Makes checkpoints: at an interval, soon after a month was closed, and when somebody asks.

Only events that can no longer be lost are signed. If a failover may lose the newest commits, these
are the events older than `lag`. Otherwise a checkpoint could accuse a log after an honest failover.
"""

import logging
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import Connection

from domain.cause import Cause, Clock
from domain.errors import Conflict, NotPossible
from domain.log.log import Log
from domain.log.origin import LogOrigin
from projections.audit.checkpoint import Checkpoint, SignedCheckpoint
from projections.audit.stored_tree import StoredTree
from projections.audit.tree_builder import TreeBuilder
from projections.engine.database import Database
from projections.stores.checkpoints import CheckpointStore, StoredCheckpoint

BATCHES_MAX = 5  # Per run, because checkpoints and deliveries wait meanwhile.
DELIVERIES_MAX = 20  # Per call of `deliver`.

logger = logging.getLogger(__name__)


class NotAccepted(Exception):
    """Raised when a sink has not taken a checkpoint; its text is one line."""


# Keeps a note, by its name, where the people of this installation cannot change it; safe to repeat.
# Raises NotAccepted.
Sink = Callable[[str, str], object]


@dataclass(eq=False)
class Checkpoints:
    """Makes and delivers checkpoints, one `every` so often, over events that are older than `lag`.

    `name` is what they call a log that has no origin yet.
    """

    log: Log
    database: Database
    tree_builder: TreeBuilder
    stored_tree: StoredTree
    checkpoint_store: CheckpointStore
    sign: Callable[[Checkpoint], SignedCheckpoint]
    name: str
    every: timedelta
    lag: Callable[[], timedelta]  # Asked each time: a standby may have come or gone.
    sink: Sink | None
    clock: Clock

    def follow(self) -> bool:
        """Add the new events of the log to the tree; return whether there may be more."""
        for _ in range(BATCHES_MAX):
            if self.tree_builder.step() < self.tree_builder.batch_max:
                return False
        return True

    def run(self) -> None:
        newest = self.checkpoint_store.newest()
        if newest is None or self._is_due(newest.signed.checkpoint):
            size = self._signable(newest)
            if size:
                self._make(size, newest)

    def make(self, note_act: Callable[[], object] | None = None) -> StoredCheckpoint:
        """Make a checkpoint now; raises NotPossible if nothing can be signed yet.

        `note_act` records who asked for it. It is called before the signature, so there is no
        signature without its record; where no event can be lost, the checkpoint covers it too.
        """
        newest = self.checkpoint_store.newest()
        size = self._require_signable(newest)
        if note_act is not None:
            note_act()
            size = self._require_signable(newest)
        return self._make(size, newest)

    def origin(self) -> str:
        """Return what checkpoints call this log, or will call it."""
        fixed, newest = self.log.find(LogOrigin, LogOrigin.id_of()), self.checkpoint_store.newest()
        if fixed is not None:
            return fixed.origin
        return newest.signed.checkpoint.origin if newest is not None else self.name

    def _require_signable(self, newest: StoredCheckpoint | None) -> int:
        self.tree_builder.catch_up()
        size = self._signable(newest)
        if not size:
            lag_s = self.lag().total_seconds()
            raise NotPossible(f"no event is older than {lag_s:.0f} s (CHECKPOINT_LAG_S) yet")
        return size

    def deliver(self) -> bool:
        """Bring to the sink what it has not accepted yet; return whether more is left.

        The newest comes first. If a reply was lost, a write-once sink may refuse the checkpoint
        that it has already, and that one must not hold up the others.
        """
        if self.sink is None:
            return False
        waiting = self.checkpoint_store.undelivered(DELIVERIES_MAX)
        for number, signed, _ in waiting:
            self.sink(name_of(signed.checkpoint), signed.note)
            self.checkpoint_store.delivered(number, self.clock())
        return len(waiting) == DELIVERIES_MAX

    def _is_due(self, newest: Checkpoint) -> bool:
        age = self.clock() - newest.at
        closed_at = self.tree_builder.closed_at
        if closed_at > newest.position and self._is_old(closed_at):
            return True
        return abs(age) >= self.every

    def _make(self, size: int, newest: StoredCheckpoint | None) -> StoredCheckpoint:
        with self.database.reading() as connection:
            if newest is not None:
                self._require_growth(connection, newest.signed.checkpoint)
            root = self.stored_tree.range_of(connection, size).root()
            position = self.stored_tree.position_of(connection, size - 1)
        made = Checkpoint(self._fixed_origin(), size, root, position, self.clock())
        return self.checkpoint_store.add(self.sign(made))

    def _fixed_origin(self) -> str:
        """Return the origin, which the log keeps from its first checkpoint on."""
        if self.log.find(LogOrigin, LogOrigin.id_of()) is None:
            cause, facts = Cause(self.clock(), "checkpoint"), {"origin": self.origin()}
            fixed = LogOrigin.begin(LogOrigin.Fixed, cause, LogOrigin.id_of(), **facts)
            with suppress(Conflict):  # Another process was first.
                self.log.append(fixed)
        return self.origin()

    def _require_growth(self, connection: Connection, newest: Checkpoint) -> None:
        """Refuse to sign a history that contradicts what was signed before."""
        try:
            same = self.stored_tree.range_of(connection, newest.size).root() == newest.root
        except LookupError:
            same = False
        if not same:
            raise NotPossible(
                f"the kept tree is not the one of the checkpoint at position {newest.position}: "
                "nothing is signed; see: python -m app audit verify"
            )

    def _signable(self, newest: StoredCheckpoint | None) -> int:
        """Return how many events are old enough, with all that are before them.

        Those before a close of a month are older, even if a clock that was ahead has dated one of
        them later.
        """
        known = newest.signed.checkpoint.position if newest is not None else 0
        if self._is_old(self.tree_builder.closed_at):
            known = max(known, self.tree_builder.closed_at)
        position = self.log.position_before(self._limit(), known)
        return self.database.read(self.stored_tree.size_at, position)

    def _limit(self) -> datetime:
        """Return the moment before which an event is old enough."""
        return self.clock() - self.lag() + datetime.resolution

    def _is_old(self, position: int) -> bool:
        rows = self.log.stored(position - 1, 1)
        is_there = bool(rows) and rows[0].position == position  # Or the audit reports that.
        return is_there and rows[0].timestamp < self._limit()


def name_of(checkpoint: Checkpoint) -> str:
    """Return the name under which a sink keeps a checkpoint; names sort by position."""
    made = f"{checkpoint.at:%Y%m%dT%H%M%S}{checkpoint.at.microsecond // 1000:03d}Z"
    return f"checkpoint-{checkpoint.position:015d}-{made}.txt"
