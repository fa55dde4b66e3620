"""What caused an event: the moment and the request; passed to every command, never ambient."""

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Protocol


class Clock(Protocol):
    """Tells the present moment, aware and in UTC."""

    def __call__(self) -> datetime: ...


@dataclass(frozen=True, slots=True)
class Cause:
    """The moment a command is decided at and the id of the request that asked for it."""

    at: datetime
    request_id: str


def utc_now() -> datetime:
    """The wall clock, as the container hands it out."""
    return datetime.now(UTC)


def month_of(moment: datetime) -> str:
    """The calendar month (UTC) as `YYYY-MM`: the unit in which personal data is forgotten."""
    return moment.astimezone(UTC).strftime("%Y-%m")
