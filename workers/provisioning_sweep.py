"""The sweep of links and plan changes: it asks again for those whose moment has come."""

import logging
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import islice
from uuid import UUID

from domain.cause import Clock
from projections.database import Database
from projections.unfinished import Unfinished
from workers.publisher import Publisher
from workers.routes import link_message, plan_change_message

WORK_MAX = 100  # Per tick: a sweep must never be the flood that it is meant to drain.
BACKLOG_MAX = 500  # Messages; with so much waiting nothing is lost, only late.
BACK_OFF_MIN = timedelta(seconds=2)
BACK_OFF_MAX = timedelta(seconds=30)
FOREVER = datetime(9999, 1, 1, tzinfo=UTC)  # For all of them, also those of a clock set back.

logger = logging.getLogger(__name__)


@dataclass
class ProvisioningSweep:
    """Sends a message for each link and plan change that is due; counts nothing."""

    database: Database
    unfinished: Unfinished
    publisher: Publisher
    clock: Clock
    _waits: dict[UUID, tuple[timedelta, datetime]] = field(default_factory=dict)

    def run(self, *, everything: bool = False, work_max: int = WORK_MAX) -> int:
        """Ask again for what is due, or for everything; return how many messages were sent."""
        if self.publisher.backlog("provision") > BACKLOG_MAX:
            return 0
        now = self.clock()
        with self.database.reading() as connection:
            # Those that wait for their next turn must not hide the ones behind them.
            limit = work_max + len(self._waits)
            found = self.unfinished.due(connection, FOREVER if everything else now, limit)
        self._waits = {work.id: self._waits[work.id] for work in found if work.id in self._waits}
        is_due = (work for work in found if everything or self._is_due(work.id, now))
        due = [*islice(is_due, work_max)]  # Whoever is left over has not had its turn.
        for work in due:
            message = link_message if work.kind == "link" else plan_change_message
            self.publisher.publish(message(work.id))
        if due:
            logger.info("the sweep sent %d messages of provisioning again", len(due))
        return len(due)

    def _is_due(self, work_id: UUID, now: datetime) -> bool:
        """Let each wait twice as long as before between two sweeps."""
        wait, not_before = self._waits.get(work_id, (BACK_OFF_MIN, now))
        if now < not_before <= now + BACK_OFF_MAX:  # Beyond it: the clock was set back.
            return False
        self._waits[work_id] = (min(2 * wait, BACK_OFF_MAX), now + wait)
        return True
