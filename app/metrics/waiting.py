"""Shows how many requests wait for the network."""

from collections.abc import Iterator
from contextlib import contextmanager
from uuid import UUID

from prometheus_client import Gauge

from domain.links.waiting import Waiting


class CountedWaiting(Waiting):
    """Places that a gauge counts while they are held."""

    def __init__(self, places: int, held: Gauge) -> None:
        super().__init__(places)
        self._held = held

    @contextmanager
    def place(self, organization_id: UUID) -> Iterator[None]:
        with super().place(organization_id), self._held.track_inprogress():
            yield
