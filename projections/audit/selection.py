"""A selection of entries: of an organization, from a position or time on, up to another."""

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID


@dataclass(frozen=True, slots=True)
class Selection:
    """Positions are inclusive at both ends. Of moments `since` is inclusive, `until` exclusive."""

    organization_id: UUID | None = None
    since: datetime | int | None = None
    until: datetime | int | None = None

    @property
    def last_position(self) -> int | None:
        """The last position of the selection, if one is given."""
        return self.until if isinstance(self.until, int) else None

    def wants(self, organization_id: UUID, charged_at: datetime, position: int) -> bool:
        """Tell whether an entry is selected."""
        match self.since:
            case datetime() if charged_at < self.since:
                return False
            case int() if position < self.since:
                return False
        match self.until:
            case datetime() if charged_at >= self.until:
                return False
            case int() if position > self.until:
                return False
        return self.organization_id in {None, organization_id}
