"""What checkpoints call this log, fixed for ever when the first of them is signed."""

from uuid import UUID

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


def log_origin_id() -> UUID:
    """Return the stream of the log's only origin."""
    return derive_id("log_origin")
