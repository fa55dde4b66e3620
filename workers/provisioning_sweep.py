"""The sweep of links and plan changes: it asks again for those whose moment has come."""

import logging
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import NamedTuple
from uuid import UUID

from domain.cause import Clock
from projections.engine.database import Database
from projections.models.unfinished import Unfinished, Work
from workers.publisher import Publisher
from workers.routes import link_message, plan_change_message

WORK_MAX = 100  # Per tick: a sweep must never be the flood that it is meant to drain.
LINKS_BACKLOG_MAX = 500  # Messages; with so much waiting nothing is lost, only late.
LINKS_BACK_OFF_MIN = timedelta(seconds=2)
LINKS_BACK_OFF_MAX = timedelta(seconds=10)  # So late at most is noticed what has settled meanwhile.
FOREVER = datetime(9999, 1, 1, tzinfo=UTC)  # For all of them, also those of a clock set back.

logger = logging.getLogger(__name__)


class _Wait(NamedTuple):
    """How long something waits for its next turn, since it was due at a moment."""

    due_at: datetime
    length: timedelta
    not_before: datetime


@dataclass
class ProvisioningSweep:
    """Sends a message for each link and plan change that is due; counts nothing."""

    database: Database
    unfinished: Unfinished
    publisher: Publisher
    clock: Clock
    _waits: dict[UUID, _Wait] = field(default_factory=dict)

    def run(self, *, everything: bool = False, work_max: int = WORK_MAX) -> int:
        """Ask again for what is due, or for everything; return how many messages were sent."""
        if self.publisher.backlog("provision") > LINKS_BACKLOG_MAX:
            return 0
        now = self.clock()
        with self.database.reading() as connection:
            # Those that wait for their next turn must not hide the ones behind them.
            limit = work_max + len(self._waits)
            found = self.unfinished.due(connection, FOREVER if everything else now, limit)
        self._waits = {work.id: self._waits[work.id] for work in found if work.id in self._waits}
        is_due = (work for work in found if everything or self._is_due(work, now))
        due = [*islice(is_due, work_max)]  # Whoever is left over has not had its turn.
        for work in due:
            message = link_message if work.kind == "link" else plan_change_message
            self.publisher.publish(message(work.id))
        if due:
            logger.info("the sweep sent %d messages of provisioning again", len(due))
        return len(due)

    def _is_due(self, work: Work, now: datetime) -> bool:
        """Let each wait twice as long as before between two sweeps, until it has moved on."""
        wait = self._waits.get(work.id)
        if wait is None or wait.due_at != work.due_at:
            wait = _Wait(work.due_at, LINKS_BACK_OFF_MIN, now)
        if now < wait.not_before <= now + LINKS_BACK_OFF_MAX:  # Beyond it: the clock was set back.
            return False
        longer = min(2 * wait.length, LINKS_BACK_OFF_MAX)
        self._waits[work.id] = _Wait(work.due_at, longer, now + wait.length)
        return True
