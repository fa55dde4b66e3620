"""The audit of every night: the whole log, in slices so short that other tasks hardly wait."""

import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field

import msgspec

from domain.cause import Clock
from domain.log.log import Log
from projections.audit.auditor import LogCheck
from projections.audit.report import Report
from projections.audit.witnesses import Witness
from projections.stores.notes import Notes

NIGHT_HOUR = 2  # UTC; a process that was down then does it when it is up.
SLICE_S = 0.25  # Of each second of the clock, so that it takes a quarter of a core at most.

logger = logging.getLogger(__name__)


@dataclass
class NightlyAudit:
    """Looks at order, invariants, kept leaves and our checkpoints; read models are left out.

    To compare read models, it would have to rebuild them all beside the service. A note keeps its
    result.
    """

    log: Log
    witnesses: Callable[[], Sequence[Witness]]
    notes: Notes
    clock: Clock
    _check: LogCheck | None = field(default=None, init=False)

    def run(self) -> bool:
        """Go on with the audit of tonight, if it is due; return whether it lasts."""
        if self._check is None:
            if not self._is_due():
                return False
            self._check = LogCheck(self.log, self.witnesses())
        check, until = self._check, time.monotonic() + SLICE_S
        while time.monotonic() < until:
            try:
                goes_on = check.step()
            except Exception:
                self._check = None  # Its state may be incomplete, so begin again.
                raise
            if not goes_on:
                self._check = None
                self._end(check.report)
                return False
        return True

    def _end(self, report: Report) -> None:
        for failure in report.failures:
            logger.critical("audit: position %d: %s", failure.position, failure.reason)
        facts = {"events": report.events, "failures": [asdict(each) for each in report.failures]}
        self.notes.replace("audit", msgspec.json.encode(facts).decode(), self.clock())

    def _is_due(self) -> bool:
        now, last = self.clock(), self.notes.newest("audit")
        return now.hour >= NIGHT_HOUR and (last is None or last.at.date() != now.date())
