"""Records that a failover has lost commits which somebody had seen."""

from typing import Self

from domain.cause import Cause
from domain.ids import derive_id
from domain.log.aggregate import Created, Root


class Discontinuity(Root):
    """A place where the log goes on without events that it had; one stream for each place."""

    TOPIC = "log"

    class Noticed(Created):
        """Events between these two positions were lost; the second is the highest one seen."""

        TOPIC = "log.discontinued"

        server: str  # The server that goes on without them.
        last_position: int  # Of the last event before the gap; 0 for none.
        seen_position: int

    @classmethod
    def notice(cls, server: str, last_position: int, seen_position: int, cause: Cause) -> Self:
        """Record a loss; a second process that notices the same one collides with this stream."""
        return cls.begin(
            cls.Noticed,
            cause,
            derive_id("log.discontinued", last_position),
            server=server,
            last_position=last_position,
            seen_position=seen_position,
        )
