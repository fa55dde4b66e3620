"""The sweep: it asks again for work that has not moved, so that a lost message costs only time.

The sweep of links and plan changes: it asks again for those whose moment has come.
"""

import logging
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import NamedTuple
from uuid import UUID

from domain.cause import Clock
from domain.log.log import Log
from domain.lookups.bulk_job import BulkJob
from projections.engine.database import Database
from projections.models.jobs import Jobs, UnfinishedJob
from projections.models.unfinished import Unfinished, Work
from workers.publisher import Publisher
from workers.routes import link_message, plan_change_message, slice_message

IDLE = timedelta(seconds=60)
JOBS_MAX = 100  # Per tick: a sweep must never be the flood that it is meant to drain.
JOBS_BACKLOG_MAX = 1_000  # Messages; with so much waiting nothing is lost, only late.
JOBS_BACK_OFF_MAX = timedelta(minutes=5)
FOREVER = datetime(9999, 1, 1, tzinfo=UTC)  # For all of them, also those of a clock set back.

logger = logging.getLogger(__name__)


class Sweep:
    """Finds unfinished jobs and sends the messages of their open slices again; counts nothing."""

    def __init__(
        self, log: Log, database: Database, jobs: Jobs, publisher: Publisher, clock: Clock
    ) -> None:
        self._log = log
        self._database = database
        self._jobs = jobs
        self._publisher = publisher
        self._clock = clock
        self._waits: dict[UUID, tuple[timedelta, datetime]] = {}

    def run(self, idle: timedelta = IDLE, jobs_max: int = JOBS_MAX) -> int:
        """Ask again for what has been idle so long; return how many messages were sent."""
        if self._publisher.backlog("lookup") > JOBS_BACKLOG_MAX:
            return 0
        now = self._clock()
        with self._database.reading() as connection:
            # Those that wait for their next turn must not hide the ones behind them.
            limit = jobs_max + len(self._waits)
            found = self._jobs.unfinished(connection, now if idle else FOREVER, limit, idle)
        self._waits = {job.id: self._waits[job.id] for job in found if job.id in self._waits}
        due = islice(self._due(found, now), jobs_max)
        sent = sum(self._resend(job.id) for job in due)
        if sent:
            logger.info("the sweep sent %d messages again", sent)
        return sent

    def _due(self, found: Iterable[UnfinishedJob], now: datetime) -> Iterable[UnfinishedJob]:
        """Let each job wait twice as long as before between two sweeps."""
        for job in found:
            wait, not_before = self._waits.get(job.id, (IDLE, now))
            if (
                not now < not_before <= now + JOBS_BACK_OFF_MAX
            ):  # Beyond it: the clock was set back.
                self._waits[job.id] = (min(2 * wait, JOBS_BACK_OFF_MAX), now + wait)
                yield job

    def _resend(self, job_id: UUID) -> int:
        job = self._log.find(BulkJob, job_id)
        if job is None:
            return 0
        slices = job.open_slices()
        for slice_index in slices:
            self._publisher.publish(slice_message(job_id, slice_index))
        return len(slices)


WORK_MAX = 100  # Per tick: a sweep must never be the flood that it is meant to drain.
LINKS_BACKLOG_MAX = 500  # Messages; with so much waiting nothing is lost, only late.
LINKS_BACK_OFF_MIN = timedelta(seconds=2)
LINKS_BACK_OFF_MAX = timedelta(seconds=10)  # So late at most is noticed what has settled meanwhile.


class _Wait(NamedTuple):
    """How long something waits for its next turn, since it was due at a moment."""

    due_at: datetime
    length: timedelta
    not_before: datetime


@dataclass
class ProvisioningSweep:
    """Sends a message for each link and plan change that is due; counts nothing."""

    database: Database
    unfinished: Unfinished
    publisher: Publisher
    clock: Clock
    _waits: dict[UUID, _Wait] = field(default_factory=dict)

    def run(self, *, everything: bool = False, work_max: int = WORK_MAX) -> int:
        """Ask again for what is due, or for everything; return how many messages were sent."""
        if self.publisher.backlog("provision") > LINKS_BACKLOG_MAX:
            return 0
        now = self.clock()
        with self.database.reading() as connection:
            # Those that wait for their next turn must not hide the ones behind them.
            limit = work_max + len(self._waits)
            found = self.unfinished.due(connection, FOREVER if everything else now, limit)
        self._waits = {work.id: self._waits[work.id] for work in found if work.id in self._waits}
        is_due = (work for work in found if everything or self._is_due(work, now))
        due = [*islice(is_due, work_max)]  # Whoever is left over has not had its turn.
        for work in due:
            message = link_message if work.kind == "link" else plan_change_message
            self.publisher.publish(message(work.id))
        if due:
            logger.info("the sweep sent %d messages of provisioning again", len(due))
        return len(due)

    def _is_due(self, work: Work, now: datetime) -> bool:
        """Let each wait twice as long as before between two sweeps, until it has moved on."""
        wait = self._waits.get(work.id)
        if wait is None or wait.due_at != work.due_at:
            wait = _Wait(work.due_at, LINKS_BACK_OFF_MIN, now)
        if now < wait.not_before <= now + LINKS_BACK_OFF_MAX:  # Beyond it: the clock was set back.
            return False
        longer = min(2 * wait.length, LINKS_BACK_OFF_MAX)
        self._waits[work.id] = _Wait(work.due_at, longer, now + wait.length)
        return True
