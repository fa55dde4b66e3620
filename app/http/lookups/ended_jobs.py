"""The replies of ended jobs, kept because partners read them again and they can no longer change.

Before a kept reply is sent the caller must check that the job is the reader's, that its state is
still the kept one, and that its personal data has not been erased.
"""

from collections import OrderedDict
from threading import Lock
from typing import NamedTuple
from uuid import UUID

from app.http.edge.compression import Kept

PART = "ended_jobs"
BYTES_MAX = 32 * 1024 * 1024  # Per process; a job of 1000 numbers takes a quarter of a megabyte.


class Shown(NamedTuple):
    """The JSON of a job, and the JSON of its state alone."""

    state: bytes
    data: Kept


class EndedJobs:
    """Keeps the replies that were read last."""

    def __init__(self, bytes_max: int = BYTES_MAX) -> None:
        self._bytes_max = bytes_max
        self._bytes = 0
        self._lock = Lock()
        self._shown = OrderedDict[tuple[UUID, UUID], Shown]()

    def find(self, organization_id: UUID, job_id: UUID) -> Shown | None:
        """Return the reply of a job of an organization, if it is kept."""
        with self._lock:
            shown = self._shown.get((organization_id, job_id))
            if shown is not None:
                self._shown.move_to_end((organization_id, job_id))
            return shown

    def keep(self, organization_id: UUID, job_id: UUID, shown: Shown) -> None:
        """Keep a reply; the least recently read ones make room."""
        with self._lock:
            self._remove(organization_id, job_id)
            self._shown[organization_id, job_id] = shown
            self._bytes += len(shown.data)
            while self._bytes > self._bytes_max:
                _, oldest = self._shown.popitem(last=False)
                self._bytes -= len(oldest.data)

    def drop(self, organization_id: UUID, job_id: UUID) -> None:
        with self._lock:
            self._remove(organization_id, job_id)

    def _remove(self, organization_id: UUID, job_id: UUID) -> None:
        shown = self._shown.pop((organization_id, job_id), None)
        if shown is not None:
            self._bytes -= len(shown.data)
