"""What checkpoints call this log, fixed for ever when the first of them is signed."""

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
