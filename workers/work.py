"""Chooses what a worker does next, by the one list of what is due.

A queue is first come, first served: behind a thousand slices of one organization, the first slice
of another would wait for all of them. So a message in the queue `lookup` only says that there is
work. Its worker takes a slice of the organization with the fewest in hand, and among these of the
one that has waited longest.

A message in the queue `provision` names its link, change or lost order, and no organization has
more than its share of the threads of a network. One in `billing` says that there are fees. Each
second a beat asks again for what is due, so a lost message costs two seconds.
"""

import logging
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import chain, islice, zip_longest
from threading import RLock
from typing import Any, Literal, NamedTuple
from uuid import UUID, uuid4

from sqlalchemy import Connection

from domain.cause import Clock
from domain.errors import RateLimited, ServiceUnavailable
from domain.limiter import share_of
from domain.links.waiting import limiters_of
from domain.log.log import Log
from domain.lookups.bulk_job import BulkJob
from domain.provider_errors import NotNow
from projections.engine.database import Database
from projections.models.due import WHOLE, Due, DueList, Kind, owner_of
from projections.stores.counters import FEES, SLICES, Counters
from workers.bulk import BulkLookup
from workers.routes import Message, Publisher, fees_message, saga_message, slice_message

# Renewed each second; after this time the slices of a killed worker are free.
LEASE = timedelta(seconds=3)
# How long a slice rests after its end, unless the read model shows that sooner.
SETTLED = timedelta(seconds=5)
# The pause after each failed start of a slice. Short trouble is over at the next beat, within a
# second; longer trouble has minutes before the last start. A provider
# that says "not now" holds back for five minutes at most, less than all rests together.
PAUSES = (timedelta(seconds=0.2), *(timedelta(seconds=each) for each in (15, 60, 240)))
LEFT_MAX = 1_000  # Messages that this process remembers; the beat finds the others.
# Slices in a row that turn out to be taken or ended; then the next message looks again.
TRIES_MAX = 20
# The pause between two messages for the same work doubles; the first ends before the next beat.
AGAIN_MIN, AGAIN_MAX = timedelta(seconds=0.9), timedelta(seconds=10)
MESSAGES_MAX = 100  # So that a beat does not itself flood a queue.
BACKLOG_MAX = 500  # Messages. While so many wait, work is late and not lost.

logger = logging.getLogger(__name__)


class _DueNow(NamedTuple):
    """Who has something due, fewest in hand and longest unserved first; what is not free."""

    connection: Connection
    now: datetime
    owners: Sequence[str]
    busy: set[str]
    counts: Counter[tuple[bool, str]]  # Of what is not free.


@dataclass(eq=False)
class Work:
    """What one process takes in hand, so that organizations take turns at its threads."""

    log: Log
    database: Database
    due_list: DueList
    counters: Counters
    bulk_lookup: BulkLookup
    publisher: Publisher
    clock: Clock
    threads: int  # Of lookups.
    network_threads: int
    _me: str = field(default_factory=lambda: uuid4().hex, init=False)
    # One choice at a time, because two threads would choose the same slice.
    _lock: Any = field(default_factory=RLock, init=False)
    _mine: dict[str, str] = field(default_factory=dict, init=False)  # Slices in hand here.
    _round: int = field(default=0, init=False)
    # The round in which an owner was served last.
    _served: dict[str, int] = field(default_factory=dict, init=False)
    _is_left: bool = field(default=False, init=False)  # A slice, to a thread that is still busy.
    # What was beyond its share and the list may not have yet, and whether it fits now.
    _left: dict[Message, Callable[[], bool]] = field(default_factory=dict, init=False)

    def __post_init__(self) -> None:
        self._networks = limiters_of(self.network_threads)

    def answer(self, job_id: UUID, slice_index: int) -> None:
        """Work on the slice whose turn it is, and publish a message again while there is more.

        If the job of the message is too new for the list, the slice that it names is taken.
        """
        for _ in range(TRIES_MAX):
            with self._lock:
                claimed, more = self._claim_slice(job_id, slice_index)
            if claimed is None:
                return
            if more is not None:
                self._wake(slice_message(more.id, more.part))
            if self._work(claimed):
                return
        self._wake(slice_message(job_id, slice_index))  # The read model is far behind; try again.

    def in_turn(
        self, network: str, organization_id: UUID, message: Message, work: Callable[[], object]
    ) -> None:
        """Do the work of a message, or leave it until a thread of the network is free for it."""
        limiter = self._networks[network]
        held = ExitStack()
        try:
            held.enter_context(limiter.slot(organization_id))
        except (RateLimited, ServiceUnavailable):
            self._leave(message, lambda: limiter.has_slot(organization_id))
            return
        try:
            with held:
                work()
        finally:
            self._publish_left()

    def beat(self) -> None:
        """Renew the slices in hand, and make sure that there is a message for what is due."""
        now = self.clock()
        with self._lock:
            mine = [*self._mine]
        if mine:
            self.counters.move(SLICES, mine, self._me, self._me, now + LEASE)
        self.counters.forget(SLICES)
        with self._due_now(now) as due:
            with self._lock:
                found = next(self._free_slices(due), None)
            others = self._free_others(due)
            fees = {each for each in due.owners if each.startswith("fee ")}
        if found is not None:
            self._wake(slice_message(found.id, found.part))
        if fees and not fees <= {key for key, *_ in self.counters.claims(FEES)}:
            self._wake(fees_message())
        if others and self.publisher.backlog("provision") <= BACKLOG_MAX:
            self._send(others, now)

    def _send(self, others: Sequence[Due], now: datetime) -> None:
        for each in others:
            pause = min(max(now - each.due_at, AGAIN_MIN), AGAIN_MAX)
            if self.counters.claim(SLICES, _key(each), self._me, now + pause):
                self._serve(each.owner)
                self.publisher.publish(saga_message(each.kind, each.id))

    @contextmanager
    def _due_now(self, now: datetime, kind: Kind | Literal[""] = "") -> Iterator[_DueNow]:
        """Look at what is due; the claims first, so that what is newer is the list."""
        claims = self.counters.claims(SLICES)
        with self.database.reading() as connection:
            owners, shown = self.due_list.owners(connection, now, kind)
            # What rests after a commit is free as soon as the list shows that position.
            busy = {k for k, at, _, holder in claims if holder is not None or not 0 < at <= shown}
            busy |= {*self._mine}  # Even if they could not be renewed.
            held = Counter(_whose(key) for key, *_, holder in claims if holder is not None)
            owners.sort(key=lambda each: (held[_whose(each)], self._served.get(each, 0)))
            yield _DueNow(connection, now, owners, busy, Counter(map(_whose, busy)))

    def _free(self, due: _DueNow, owner: str, most: int) -> list[Due]:
        limit = due.counts[_whose(owner)] + most
        found = self.due_list.first(due.connection, owner, due.now, limit)
        return [each for each in found if _key(each) not in due.busy][:most]

    def _free_slices(self, due: _DueNow) -> Iterator[Due]:
        """Find the slices that may be taken here, at most two of each organization."""
        for owner in (each for each in due.owners if each.startswith("slice ")):
            free = self._free(due, owner, 2)
            if free and not self._may_claim(owner):
                self._is_left = True
                continue
            yield from free

    def _free_others(self, due: _DueNow) -> list[Due]:
        """Find what else is due and was not asked for lately, of each owner in turn."""
        owners = [each for each in due.owners if not each.startswith(("slice ", "fee "))]
        theirs = (self._free(due, owner, MESSAGES_MAX) for owner in owners[:MESSAGES_MAX])
        in_turn = chain.from_iterable(zip_longest(*theirs))
        return [*islice(filter(None, in_turn), MESSAGES_MAX)]

    def _claim_slice(self, job_id: UUID, slice_index: int) -> tuple[Due | None, Due | None]:
        """Take the next slice; return it, and another one that could be taken as well."""
        for _ in range(TRIES_MAX):
            now = self.clock()
            with self._due_now(now, "slice") as due:
                new = self._unknown(due, job_id, slice_index)
                found = [new] if new is not None else []
                found += islice(self._free_slices(due), 2)
            if not found:
                return None, None
            this, *others = found
            if self.counters.claim(SLICES, _key(this), self._me, now + LEASE):
                self._mine[_key(this)] = this.owner
                self._serve(this.owner)
                self._is_left = self._is_left or bool(others)
                return this, next((each for each in others if self._may_claim(each.owner)), None)
        return None, None

    def _unknown(self, due: _DueNow, job_id: UUID, slice_index: int) -> Due | None:
        """Return the slice that a message names, if the list does not have it yet."""
        if self.due_list.knows(due.connection, job_id):
            return None
        job = self.log.find(BulkJob, job_id)
        if job is None:
            logger.error("job %s does not exist", job_id)
            return None
        at = job.created.timestamp
        this = Due(job_id, slice_index, owner_of("slice", job.organization_id), at, at)
        if _key(this) in due.busy or not job.open_items(slice_index):
            return None
        if not self._may_claim(this.owner):
            self._leave(slice_message(job_id, slice_index), lambda: self._may_claim(this.owner))
            return None
        return this

    def _may_claim(self, owner: str) -> bool:
        return [*self._mine.values()].count(owner) < share_of(self.threads)

    def _serve(self, owner: str) -> None:
        self._round += 1
        self._served[owner] = self._round

    def _work(self, this: Due) -> bool:
        """Work on a slice and release it; False if it had ended before."""
        rest, position, has_ended = SETTLED, 0, False
        try:
            position = self.bulk_lookup.work(this.id, this.part)
            has_ended = not position
        except NotNow:  # Not a failure: a beat asks again after the pause.
            rest = self._rest_after_failure(this)
        except Exception:
            rest = self._rest_after_failure(this)
            raise
        finally:
            with self._lock:
                del self._mine[_key(this)]
                left, self._is_left = self._is_left, False
            with suppress(Exception):  # It lapses by itself.
                until = self.clock() + rest
                self.counters.move(SLICES, [_key(this)], self._me, None, until, position)
            if left:
                self._wake(slice_message(this.id, this.part))
            self._publish_left()
        return not has_ended

    def _rest_after_failure(self, this: Due) -> timedelta:
        """Return how long to leave a slice alone; longer after each of its starts."""
        with suppress(Exception):  # The log itself may be in trouble.
            job = self.log.get(BulkJob, this.id)
            starts = job.attempts.get(this.part, 1)
            return PAUSES[min(starts, len(PAUSES)) - 1]
        return PAUSES[0]

    def _wake(self, message: Message) -> None:
        """Publish a message that says there is work, unless one is waiting already."""
        with suppress(Exception):  # Whatever the broker raises, the next beat publishes again.
            if not self.publisher.backlog(message.queue):
                self.publisher.publish(message)

    def _leave(self, message: Message, fits: Callable[[], bool]) -> None:
        with self._lock:
            if len(self._left) < LEFT_MAX:
                self._left.setdefault(message, fits)

    def _publish_left(self) -> None:
        """Publish the oldest message that was beyond its share and is not any more."""
        with self._lock:
            message = next((each for each, fits in self._left.items() if fits()), None)
            if message is not None:
                del self._left[message]
        if message is not None:
            with suppress(Exception):  # As above.
                self.publisher.publish(message)


def _key(due: Due) -> str:
    """Return the key of a claim; what has moved on since it was asked for has another one."""
    part = due.part if due.part != WHOLE else int(-due.due_at.timestamp() * 1_000)
    return f"{due.id.hex} {part} {due.owner.split()[1]}"


def _whose(key: str) -> tuple[bool, str]:
    """Return whether a key, or an owner, is of slices, and the organization."""
    *_, kind_or_part, organization = key.split()
    return kind_or_part == "slice" or kind_or_part.isdecimal(), organization
