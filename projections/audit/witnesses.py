"""Witnesses of what the log was before: the leaves that the auditor has kept, and checkpoints.

An audit shows them each row of the log with its leaf. At the end they report what has changed.
"""

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from operator import attrgetter
from typing import Annotated

import msgspec

from domain.log.discontinuity import Discontinuity
from domain.log.log import Stored
from projections.audit.checkpoint import Checkpoint
from projections.audit.report import FAILURES_MAX, Failure, Report, Uncovered, Verdict
from projections.audit.stored_tree import TILE, Leaf, StoredTree
from projections.audit.tree import CompactRange
from projections.engine.database import Database

# A loss is noticed at the next call to the new server. So a loss that was recorded long before or
# after a checkpoint does not explain it; otherwise a made-up loss could excuse any month.
NOTICED_WITHIN = timedelta(days=1)


class StoredLeaves:
    """The kept tree: it shows where events were changed, removed, inserted or moved."""

    def __init__(self, database: Database, tree: StoredTree, first: int = 0) -> None:
        """Begin at the leaf of index `first`; leaves that are kept from now on are ignored."""
        self._database = database
        self._tree = tree
        self._size, self._end = database.read(tree.end)
        self._leaves = self._read(first)
        self._next = next(self._leaves, None)
        self._compared = 0
        self._faults: list[Failure] = []

    def see(self, row: Stored, leaf: bytes) -> None:
        """Compare the next row with the kept leaves, by position."""
        while self._next is not None and self._next[0] < row.position:
            self._miss(self._next)
        if self._next is not None and self._next[0] == row.position:
            self._compared += 1
            if self._next[1] != leaf:
                self._add(row.position, "the event is not what it was when it was first seen")
            self._next = next(self._leaves, None)
        elif row.position <= self._end:
            reason = "the event was put in: others had been seen behind it before"
            self._add(row.position, reason)

    def testify(self, report: Report) -> None:
        """Report all differences in the order of positions."""
        while self._next is not None and len(self._faults) < FAILURES_MAX:
            self._miss(self._next)
        report.leaves = self._compared
        report.failures[:0] = sorted(self._faults, key=attrgetter("position"))

    def _miss(self, leaf: Leaf) -> None:
        self._add(leaf[0], "the event that was first seen here is gone")
        self._next = next(self._leaves, None)

    def _add(self, position: int, reason: str) -> None:
        if len(self._faults) < FAILURES_MAX:
            self._faults.append(Failure(position, reason))

    def _read(self, first: int) -> Iterator[Leaf]:
        for number in range(first // TILE, -(-self._size // TILE)):
            tile = self._database.read(self._tree.tile, number)
            leaves = tile.leaves if tile is not None else ()
            skipped, start = first - number * TILE, number * TILE
            for index, leaf in enumerate(leaves):
                if index >= skipped and start + index < self._size:
                    yield leaf
            if tile is not None and tile.fault is not None:
                self._add(leaves[0][0] if leaves else 0, tile.fault)


@dataclass(frozen=True, slots=True)
class Claim:
    """A checkpoint to compare with the log; `fault`: why its signature is not ours."""

    name: str
    checkpoint: Checkpoint
    fault: str | None = None


class _Noticed(msgspec.Struct):
    """The fields of a known loss that may explain a checkpoint."""

    timestamp: Annotated[datetime, msgspec.Meta(tz=True)]
    last_position: int


class Claims:
    """Compares checkpoints with a tree that it builds from the rows, at each of their sizes."""

    def __init__(
        self,
        claims: Iterable[Claim],
        before: CompactRange | None = None,
        *,
        listed: bool = True,
        damaged: Sequence[Failure] = (),
    ) -> None:
        """`before` is the tree of what precedes the first row, if not all rows are shown.

        Of claims that are not `listed` the report has only the failures; so it has of checkpoints
        that are `damaged` and can claim nothing.
        """
        self._listed, self._damaged, claims = listed, damaged, [*claims]
        self._has_claims = bool(claims)
        self._tree = before or CompactRange()
        ordered = sorted(claims, key=lambda claim: claim.checkpoint.size)
        self._open = deque(each for each in ordered if each.checkpoint.size >= self._tree.size)
        self._losses: list[tuple[int, _Noticed]] = []
        # For each signed position the last row up to it: an earlier one if events were lost.
        self._signed = deque(sorted(each.checkpoint.position for each in self._open))
        self._last_up_to: dict[int, int] = {}
        self._position = 0
        self._judged: list[tuple[Claim, bool]] = []
        self._behind = self._first_behind = 0  # Rows since the last checkpoint that holds.
        self._judge(0)

    def see(self, row: Stored, leaf: bytes) -> None:
        """Add the leaf to the tree, and compare it with the checkpoints of its size."""
        while self._signed and self._signed[0] < row.position:
            self._last_up_to[self._signed.popleft()] = self._position
        self._position = row.position
        self._tree.append(leaf)
        self._behind += 1
        self._first_behind = self._first_behind or row.position
        if self._open and self._open[0].checkpoint.size == self._tree.size:
            self._judge(row.position)
        if row.topic == Discontinuity.Noticed.TOPIC:
            with suppress(msgspec.MsgspecError):  # Bytes that nobody can read explain nothing.
                self._losses.append((row.position, msgspec.json.decode(row.state, type=_Noticed)))

    def leave_out_later(self) -> None:
        """Forget the checkpoints of more events than have been shown."""
        self._open.clear()

    def testify(self, report: Report) -> None:
        """Give a verdict on each checkpoint; the first that fails names the range of the change."""
        trusted, changed = report.trusted, False
        if self._listed and self._has_claims:
            last = self._position if self._behind else 0
            report.uncovered = Uncovered(self._behind, self._first_behind, last)
        self._judged += [(claim, False) for claim in self._open]
        for claim, is_same in self._judged:
            name, checkpoint = claim.name, claim.checkpoint
            loss = None if is_same else self._loss_that_explains(checkpoint)
            reason = claim.fault or ""
            if reason:
                report.add(checkpoint.position, [f"{name}: {reason}"])
            elif is_same:
                trusted = max(trusted, checkpoint.position)
            elif loss is not None:
                reason = f"explained by the loss that was noticed at position {loss}"
                report.explained += 1
                report.losses.append(Failure(loss, f"{name} signed events that were lost"))
            else:
                between = f"after position {trusted} and up to {checkpoint.position}"
                reason = f"what it signed {between} is not what the log holds"
                if not changed:  # Later ones fail with it.
                    report.add(trusted + 1, [f"{name}: {reason}"])
                changed = True
            if self._listed:
                span = checkpoint.position, checkpoint.size
                report.checkpoints.append(Verdict(name, *span, not reason, reason))
        for fault in self._damaged:
            report.add(fault.position, [fault.reason])

    def _judge(self, position: int) -> None:
        while self._open and self._open[0].checkpoint.size == self._tree.size:
            claim = self._open.popleft()
            same = (claim.checkpoint.root, claim.checkpoint.position) == (
                self._tree.root(),
                position or claim.checkpoint.position,
            )
            self._judged.append((claim, same))
            if same and claim.fault is None:
                self._behind = self._first_behind = 0

    def _loss_that_explains(self, checkpoint: Checkpoint) -> int | None:
        there = self._last_up_to.get(checkpoint.position, self._position)
        for position, loss in self._losses:
            is_within = there <= loss.last_position < checkpoint.position < position
            if is_within and abs(loss.timestamp - checkpoint.at) <= NOTICED_WITHIN:
                return position
        return None


Witness = StoredLeaves | Claims  # Both see every row of the log, and testify at its end.
