"""What the log itself has gone through: commits that somebody saw and a failover has lost."""

from typing import Self

from domain.cause import Cause
from domain.ids import derive_id
from domain.log.aggregate import Created, Root


class Discontinuity(Root):
    """A place where the log goes on without events that it had; one stream for each place."""

    TOPIC = "log"

    class Noticed(Created):
        """Between these positions events were lost: the second is the highest one noticed."""

        TOPIC = "log.discontinued"

        server: str  # That goes on without them.
        last_position: int  # Of the last event before them, which is there; 0 for none.
        seen_position: int

        def apply(self, aggregate: "Discontinuity") -> None:
            """Nothing: it is told, and decides nothing."""

    @classmethod
    def notice(cls, server: str, last_position: int, seen_position: int, cause: Cause) -> Self:
        """Record it; whoever notices the same place as well collides with this stream."""
        return cls.begin(
            cls.Noticed,
            cause,
            derive_id("log.discontinued", last_position),
            server=server,
            last_position=last_position,
            seen_position=seen_position,
        )
