"""For how long a follower has been behind."""

from datetime import datetime

from domain.log.log import Log, Poisoned
from projections.engine.health import Lag


def behind_s(log: Log, lag: Lag, now: datetime) -> float | None:
    """Return since when a follower has not been at the end of the log, in seconds.

    Read models note when they last were. The dispatcher does not, so for it, and for a note from
    the future (a clock was set back), this is the age of the oldest event that was not followed;
    None when that event cannot be read.
    """
    if lag.caught_up_at is not None and lag.caught_up_at <= now:
        return (now - lag.caught_up_at).total_seconds()
    try:
        ahead = log.read(lag.position, 1)
    except Poisoned:
        return None
    return max(0.0, (now - ahead[0].event.timestamp).total_seconds()) if ahead else 0.0
