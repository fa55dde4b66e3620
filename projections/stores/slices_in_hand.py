"""The slices that workers have in hand; losing the rows costs repeated lookups, but no charge."""

from collections.abc import Collection, Sequence
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from projections.engine.database import from_micros
from projections.models.open_slices import Slice
from projections.stores.counters import SLICES, Counters


class Held(NamedTuple):
    """A slice in the hand of a process until a renewable moment; without `holder` it rests."""

    slice: Slice
    organization_id: UUID
    holder: UUID | None
    until: datetime

    @property
    def key(self) -> str:
        job_id, index = self.slice
        return f"{job_id.hex} {index} {self.organization_id.hex}"


class SlicesInHand:
    """One claim per slice that a worker has in hand, or that rests until a moment."""

    def __init__(self, counters: Counters) -> None:
        self._counters = counters

    def all(self) -> Sequence[Held]:
        """Return what has not lapsed."""
        return [_held(*row) for row in self._counters.claims(SLICES)]

    def take(self, held: Held) -> bool:
        """Take a slice that is free: without a row, or with one that has lapsed."""
        assert held.holder is not None
        return self._counters.claim(SLICES, held.key, held.holder.hex, held.until)

    def rest(self, held: Held) -> None:
        """Release a slice of its holder; no worker may take it before `held.until`."""
        assert held.holder is not None
        self._counters.move(SLICES, [held.key], held.holder.hex, None, held.until)

    def renew(self, mine: Collection[Held], holder: UUID, until: datetime) -> None:
        """Keep slices of the holder until a later moment."""
        if mine:
            keys = [each.key for each in mine]
            self._counters.move(SLICES, keys, holder.hex, holder.hex, until)

    def forget_lapsed(self) -> None:
        self._counters.forget(SLICES)

    def end_rests(self) -> None:
        """Let resting slices be taken at once."""
        self._counters.clear(SLICES, unheld=True)

    def clear(self) -> None:
        """Delete all rows. Call this only while no other process runs that may hold a slice."""
        self._counters.clear(SLICES)


def _held(key: str, _: int, until: int, holder: str | None) -> Held:
    job_id, index, organization_id = key.split()
    this = Slice(UUID(job_id), int(index))
    by = None if holder is None else UUID(holder)
    return Held(this, UUID(organization_id), by, from_micros(until))
