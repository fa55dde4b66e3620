"""The transactions that somebody selects, read from the log."""

from collections.abc import Iterator
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

from domain.log.log import Log
from projections.engine.reader import read_events
from projections.engine.rebuild import Progress, ignore_progress
from projections.models.transactions import REPLAYED, Replayed, replayed


class Selection(NamedTuple):
    """Entries of an organization, from a position or time on, up to another.

    Positions are inclusive at both ends. Of moments `since` is inclusive, `until` exclusive.
    """

    organization_id: UUID | None = None
    since: datetime | int | None = None
    until: datetime | int | None = None

    @property
    def last_position(self) -> int | None:
        return self.until if isinstance(self.until, int) else None

    def starts_after(self, organization_id: UUID, charged_at: datetime, position: int) -> bool:
        """Tell whether an entry, of the organization that is selected, is before all that is."""
        at: Any = charged_at if isinstance(self.since, datetime) else position
        is_its = self.organization_id in {None, organization_id}
        return is_its and self.since is not None and at < self.since

    def wants(self, organization_id: UUID, charged_at: datetime, position: int) -> bool:
        if self.starts_after(organization_id, charged_at, position):
            return False
        match self.until:
            case datetime() if charged_at >= self.until:
                return False
            case int() if position > self.until:
                return False
        return self.organization_id in {None, organization_id}


def read_transactions(
    log: Log, selection: Selection, progress: Progress = ignore_progress
) -> Iterator[Replayed]:
    for each in replayed(read_events(log, REPLAYED, progress, selection.last_position)):
        if selection.wants(each.organization_id, each.at, each.entry.position):
            yield each
