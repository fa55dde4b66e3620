"""The sweep: it asks again for work that has not moved, so that a lost message costs only time."""

import logging
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from itertools import islice
from uuid import UUID

from domain.cause import Clock
from domain.log.log import Log
from domain.lookups.bulk_job import BulkJob
from projections.engine.database import Database
from projections.models.jobs import Jobs, UnfinishedJob
from workers.publisher import Publisher
from workers.routes import slice_message

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
