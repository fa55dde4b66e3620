"""Which entries somebody wants: of an organization, from a position or time on, up to another."""

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID


@dataclass(frozen=True, slots=True)
class Selection:
    """A position counts at both ends. A moment counts as `since`, and as `until` no more."""

    organization_id: UUID | None = None
    since: datetime | int | None = None
    until: datetime | int | None = None

    @property
    def last_position(self) -> int | None:
        """The position behind which nothing is wanted, if one is given."""
        return self.until if isinstance(self.until, int) else None

    def wants(self, organization_id: UUID, charged_at: datetime, position: int) -> bool:
        """Tell whether an entry is one of these."""
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
