"""What ended jobs were shown as: a job cannot change any more, and polls and retries read it again.

Who asks has to see first that it may still be shown: that the job is the caller's, still says the
same of itself, and that nobody has erased what is personal in it.
"""

from collections import OrderedDict
from threading import Lock
from typing import NamedTuple
from uuid import UUID

PART = "ended_jobs"
BYTES_MAX = 32 * 1024 * 1024  # Of one process; a job of 1000 numbers is a quarter of a megabyte.


class Shown(NamedTuple):
    """The JSON of a job and of its state alone, and the months whose keys have opened it."""

    state: bytes
    data: bytes
    months: frozenset[str]


class EndedJobs:
    """Keeps the ones that were read last."""

    def __init__(self, bytes_max: int = BYTES_MAX) -> None:
        self._bytes_max = bytes_max
        self._bytes = 0
        self._lock = Lock()
        self._shown = OrderedDict[tuple[UUID, UUID], Shown]()

    def find(self, organization_id: UUID, job_id: UUID) -> Shown | None:
        """Return what a job of an organization was shown as, if it is kept."""
        with self._lock:
            shown = self._shown.get((organization_id, job_id))
            if shown is not None:
                self._shown.move_to_end((organization_id, job_id))
            return shown

    def keep(self, organization_id: UUID, job_id: UUID, shown: Shown) -> None:
        """Keep a job; those that nobody has read for longest make room."""
        self.drop(organization_id, job_id)
        with self._lock:
            self._shown[organization_id, job_id] = shown
            self._bytes += len(shown.data)
            while self._bytes > self._bytes_max:
                _, oldest = self._shown.popitem(last=False)
                self._bytes -= len(oldest.data)

    def drop(self, organization_id: UUID, job_id: UUID) -> None:
        """Keep a job no longer."""
        with self._lock:
            shown = self._shown.pop((organization_id, job_id), None)
            if shown is not None:
                self._bytes -= len(shown.data)
