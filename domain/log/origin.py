"""What checkpoints call this log, fixed for ever when the first of them is signed."""

from typing import Self
from uuid import UUID

from domain.cause import Cause
from domain.ids import derive_id
from domain.log.aggregate import Created, Root, sets


class LogOrigin(Root):
    """The origin of the log's signed notes; it stays when the public URL changes.

    Logs of earlier releases have none before their next note.
    """

    TOPIC = "log_origin"

    class Fixed(Created):
        TOPIC = "log_origin.fixed"
        SETS = sets("origin")

        origin: str

    origin: str

    @classmethod
    def fix(cls, origin: str, cause: Cause) -> Self:
        """Fix the origin; a second one collides, because the id is derived."""
        return cls.begin(cls.Fixed, cause, log_origin_id(), origin=origin)


def log_origin_id() -> UUID:
    """Return the stream of the log's only origin."""
    return derive_id("log_origin")
