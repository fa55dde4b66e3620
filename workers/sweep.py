"""The sweeps ask again for work that has not moved, so that a lost message costs only time.

One is for bulk jobs, one for links, plan changes and lost orders that are due.
"""

import logging
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import islice
from uuid import UUID

from domain.cause import Clock, lies_ahead
from domain.log.log import Log
from domain.lookups.bulk_job import BulkJob
from projections.engine.database import Database
from projections.models.jobs import Jobs, UnfinishedJob
from projections.models.unfinished import Kind, Unfinished, UnfinishedWork
from workers.routes import (
    Message,
    Publisher,
    link_message,
    lost_order_message,
    plan_change_message,
    slice_message,
)

IDLE = timedelta(seconds=60)
JOBS_MAX = 100  # Per tick, so that a sweep does not itself flood the queue.
JOBS_BACKLOG_MAX = 1_000  # Messages. While so many wait, work is late and not lost.
JOBS_BACK_OFF_MAX = timedelta(minutes=5)
# For all work, whatever its moment.
FOREVER = datetime(9999, 1, 1, tzinfo=UTC)

logger = logging.getLogger(__name__)


class _Turns:
    """Doubles the time between two turns of the same work. Work that has moved starts anew."""

    def __init__(self, wait_min: timedelta, wait_max: timedelta) -> None:
        self._wait_min = wait_min
        self._wait_max = wait_max
        self._waits: dict[UnfinishedJob | UnfinishedWork, tuple[timedelta, datetime]] = {}

    def __len__(self) -> int:
        return len(self._waits)

    def keep(self, found: Iterable[UnfinishedJob | UnfinishedWork]) -> None:
        """Forget all other work."""
        self._waits = {each: self._waits[each] for each in found if each in self._waits}

    def waited(self, work: UnfinishedJob | UnfinishedWork) -> timedelta:
        """Return how long some work waits between its turns; new work waits least."""
        return self._waits.get(work, (self._wait_min, None))[0]

    def take(self, work: UnfinishedJob | UnfinishedWork, now: datetime) -> bool:
        """Take the turn of some work; False if its time has not come yet."""
        wait, not_before = self._waits.get(work, (self._wait_min, now))
        if lies_ahead(not_before, now):
            return False
        self._waits[work] = (min(2 * wait, self._wait_max), now + wait)
        return True


@dataclass(eq=False)
class Sweep:
    """Sends the messages of open slices again for jobs that have not moved."""

    log: Log
    database: Database
    jobs: Jobs
    publisher: Publisher
    clock: Clock
    _turns: _Turns = field(default_factory=lambda: _Turns(IDLE, JOBS_BACK_OFF_MAX), init=False)

    def run(self, idle: timedelta = IDLE, jobs_max: int = JOBS_MAX) -> int:
        """Ask again for jobs that were idle for `idle`; return how many messages were sent."""
        if self.publisher.backlog("lookup") > JOBS_BACKLOG_MAX:
            return 0
        now = self.clock()
        with self.database.reading() as connection:
            # Jobs that wait for their next turn must not hide the jobs behind them.
            limit = jobs_max + len(self._turns)
            found = self.jobs.unfinished(connection, now if idle else FOREVER, limit, idle)
        self._turns.keep(found)
        due = islice((job for job in found if self._turns.take(job, now)), jobs_max)
        sent = sum(self._resend(job.id) for job in due)
        if sent:
            logger.info("the sweep sent %d messages again", sent)
        return sent

    def _resend(self, job_id: UUID) -> int:
        job = self.log.find(BulkJob, job_id)
        if job is None:
            return 0
        slices = job.open_slices()
        for slice_index in slices:
            self.publisher.publish(slice_message(job_id, slice_index))
        return len(slices)


MESSAGES: Mapping[Kind, Callable[[UUID], Message]] = {
    "link": link_message,
    "plan_change": plan_change_message,
    "lost_order": lost_order_message,
}
WORK_MAX = 100  # Per tick, so that a sweep does not itself flood the queue.
LINKS_BACKLOG_MAX = 500  # Messages. While so many wait, work is late and not lost.
LINKS_BACK_OFF_MIN = timedelta(seconds=2)
# The longest delay until work that has become possible is noticed.
LINKS_BACK_OFF_MAX = timedelta(seconds=10)


@dataclass
class ProvisioningSweep:
    """Sends a message for each link, plan change and lost order that is due."""

    database: Database
    unfinished: Unfinished
    publisher: Publisher
    clock: Clock
    _turns: _Turns = field(
        default_factory=lambda: _Turns(LINKS_BACK_OFF_MIN, LINKS_BACK_OFF_MAX), init=False
    )

    def run(self, *, everything: bool = False, work_max: int = WORK_MAX) -> int:
        """Ask again for what is due, or for everything; return how many messages were sent."""
        if self.publisher.backlog("provision") > LINKS_BACKLOG_MAX:
            return 0
        now = self.clock()
        with self.database.reading() as connection:
            # Work that waits for its next turn must not hide the work behind it.
            limit = work_max + len(self._turns)
            found = self.unfinished.due(connection, FOREVER if everything else now, limit)
        self._turns.keep(found)
        # New work first, so that a backlog of one network does not hide the work of others.
        found = sorted(found, key=self._turns.waited)
        is_due = (work for work in found if everything or self._turns.take(work, now))
        due = [*islice(is_due, work_max)]  # What is left over has not used its turn.
        for work in due:
            self.publisher.publish(MESSAGES[work.kind](work.id))
        if due:
            logger.info("the sweep sent %d messages of provisioning again", len(due))
        return len(due)
