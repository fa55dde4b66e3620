"""Chooses the next slice; a message in the queue `lookup` only says that there is work.

A queue is first come, first served: behind a thousand slices of one organization, the first slice
of another would wait for all of them. So a worker does not take the slice that a message names. It
takes one of the organization with the fewest slices in hand, and among these of the one that has
waited longest.
"""

import logging
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import islice
from threading import RLock
from typing import Any
from uuid import UUID, uuid4

from sqlalchemy import Connection

from domain.cause import Clock
from domain.limiter import share_of
from domain.log.log import Log
from domain.lookups.bulk_job import BulkJob
from domain.provider_errors import NotNow
from projections.engine.database import Database
from projections.models.open_slices import OpenSlices, Slice
from projections.stores.slices_in_hand import Held, SlicesInHand
from workers.bulk import BulkLookup
from workers.routes import Publisher, slice_message

# Renewed each second; after this time the slices of a killed worker are free.
LEASE = timedelta(seconds=3)
# How long a slice rests after its end, because the read model may still show it as open.
SETTLED = timedelta(seconds=0.3)
# The same if it had ended before it was taken: then the read model is far behind, or has stopped.
STALE = timedelta(seconds=5)
# The pause after each failed start of a slice. Short trouble is over at the next beat, within a
# second; longer trouble has minutes before the last start. A provider
# that says "not now" holds back for five minutes at most, less than all rests together.
RESTS = (timedelta(seconds=0.2), *(timedelta(seconds=each) for each in (15, 60, 240)))
LEFT_MAX = 1_000  # New slices that this process remembers; the sweep finds the others.
# Slices in a row that turn out to be taken or ended; then the next message looks again.
TRIES_MAX = 20

logger = logging.getLogger(__name__)


@dataclass(eq=False)
class LookupTurns:
    """Chooses slices for the threads of one process, so that organizations take turns."""

    log: Log
    database: Database
    open_slices: OpenSlices
    slices_in_hand: SlicesInHand
    bulk_lookup: BulkLookup
    publisher: Publisher
    clock: Clock
    threads: int
    _me: UUID = field(default_factory=uuid4, init=False)
    # One choice at a time, because two threads would choose the same slice.
    _lock: Any = field(default_factory=RLock, init=False)
    _mine: dict[Slice, UUID] = field(default_factory=dict, init=False)
    _turn: int = field(default=0, init=False)
    # The turn in which an organization was served last.
    _served: dict[UUID, int] = field(default_factory=dict, init=False)
    # Whether work was left to a thread that is still busy, and such slices that the read model does
    # not have yet.
    _is_left: bool = field(default=False, init=False)
    _left: dict[Slice, None] = field(default_factory=dict, init=False)

    def answer(self, job_id: UUID, slice_index: int) -> None:
        """Work on the slice whose turn it is, and publish a message again while there is more.

        If the job of the message is too new for the read model, the slice that it names is taken.
        """
        for _ in range(TRIES_MAX):
            with self._lock:
                taken, more = self._take(Slice(job_id, slice_index))
            if taken is None:
                return
            if more is not None:
                self._ring(more)
            if self._work(taken):
                return
        self._ring(Slice(job_id, slice_index))  # The read model is far behind; try again.

    def beat(self) -> None:
        """Renew the slices in hand, and make sure that there is a message for open slices."""
        now = self.clock()
        with self._lock:
            mine = [Held(this, owner, self._me, now) for this, owner in self._mine.items()]
        self.slices_in_hand.renew(mine, self._me, now + LEASE)
        self.slices_in_hand.forget_lapsed()
        with self._lock:
            held = self.slices_in_hand.all()
            with self.database.reading() as connection:
                found = next(self._free(connection, held), None)
        if found is not None:
            self._ring(found[1])

    def _take(self, bell: Slice) -> tuple[Slice | None, Slice | None]:
        """Take the next slice; return it, and another one that could be taken as well."""
        for _ in range(TRIES_MAX):
            now = self.clock()
            held = self.slices_in_hand.all()
            with self.database.reading() as connection:
                new = self._unknown(connection, bell, held)
                found = [new] if new is not None else []
                free = self._free(connection, held)
                found += islice(free, 2)
            if not found:
                return None, None
            organization_id, this = found[0]
            if self._hold(organization_id, this, now):
                more = [each for owner, each in found[1:] if self._may_hold(owner)]
                self._is_left = self._is_left or len(found) > 1
                return this, more[0] if more else None
        return None, None

    def _unknown(
        self, connection: Connection, bell: Slice, held: Sequence[Held]
    ) -> tuple[UUID, Slice] | None:
        """Return the slice that a message names, if the read model does not have it yet."""
        if self.open_slices.knows(connection, bell.job_id) or bell in self._busy(held):
            return None
        job = self.log.find(BulkJob, bell.job_id)
        if job is None:
            logger.error("job %s does not exist", bell.job_id)
            return None
        if not job.open_items(bell.slice_index):
            return None
        if not self._may_hold(job.organization_id):
            if len(self._left) < LEFT_MAX:
                self._left[bell] = None
            return None
        return job.organization_id, bell

    def _free(self, connection: Connection, held: Sequence[Held]) -> Iterator[tuple[UUID, Slice]]:
        """Find the slices that may be taken here: fewest in hand first, then longest unserved.

        At most two of each organization, because callers need no more.
        """
        busy = self._busy(held)
        counts = Counter(each.organization_id for each in held if each.holder is not None)
        known = Counter(each.organization_id for each in held)
        owners = self.open_slices.organizations_of(connection)
        owners.sort(key=lambda each: (counts[each], self._served.get(each, 0)))
        for owner in owners:
            slices = self.open_slices.first(connection, owner, known[owner] + 2)
            free = [each for each in slices if each not in busy]
            if free and not self._may_hold(owner):
                self._is_left = True
                continue
            for each in free:
                yield owner, each

    def _busy(self, held: Sequence[Held]) -> set[Slice]:
        """Return the slices that are not free; slices in hand here count even if not renewed."""
        return {each.slice for each in held} | self._mine.keys()

    def _may_hold(self, organization_id: UUID) -> bool:
        return [*self._mine.values()].count(organization_id) < share_of(self.threads)

    def _hold(self, organization_id: UUID, this: Slice, now: datetime) -> bool:
        held = Held(this, organization_id, self._me, now + LEASE)
        if not self.slices_in_hand.take(held):
            return False
        self._mine[this] = organization_id
        self._turn += 1
        self._served[organization_id] = self._turn
        return True

    def _work(self, this: Slice) -> bool:
        """Work on a slice and release it; False if it had ended before."""
        rest = RESTS[0]
        try:
            worked = self.bulk_lookup.work(*this)
            rest = SETTLED if worked else STALE
        except NotNow:  # Not a failure: a beat rings again after the rest.
            worked, rest = True, self._rest_after_failure(this)
        except Exception:
            rest = self._rest_after_failure(this)
            raise
        finally:
            with self._lock:
                owner = self._mine.pop(this)
                left, self._is_left = self._is_left, False
                new = next(iter(self._left), None)
                if new is not None:
                    del self._left[new]
            with suppress(Exception):  # It lapses by itself.
                self.slices_in_hand.rest(Held(this, owner, self._me, self.clock() + rest))
            if left:
                self._ring(this)
            if new is not None:
                with suppress(Exception):  # As below; then it waits for the sweep.
                    self.publisher.publish(slice_message(*new))
        return worked

    def _rest_after_failure(self, this: Slice) -> timedelta:
        """Return how long to leave a slice alone; longer after each of its starts."""
        with suppress(Exception):  # The log itself may be in trouble.
            job = self.log.get(BulkJob, this.job_id)
            starts = job.attempts.get(this.slice_index, 1)
            return RESTS[min(starts, len(RESTS)) - 1]
        return RESTS[0]

    def _ring(self, this: Slice) -> None:
        """Publish a message that says there is work, unless one is waiting already."""
        with suppress(Exception):  # Whatever the broker raises, the next beat publishes again.
            if not self.publisher.backlog("lookup"):
                self.publisher.publish(slice_message(*this))
