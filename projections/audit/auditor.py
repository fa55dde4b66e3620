"""The auditor reads the whole log and checks its order, every rule, and every read model."""

from collections.abc import Sequence
from itertools import islice

from domain.log.discontinuity import Discontinuity
from domain.log.log import Log, Poisoned, Stored, decoded
from projections.audit.report import Failure, Report
from projections.audit.rules import Rules
from projections.audit.tree import leaf_hash
from projections.audit.witnesses import Witness
from projections.engine.positions import Source
from projections.engine.read_model import BATCH_EVENTS_MAX, ReadModel
from projections.engine.reader import read_rows
from projections.engine.rebuild import Progress, ignore_progress
from projections.engine.verify import differences


def verify(
    source: Source,
    models: Sequence[ReadModel],
    progress: Progress = ignore_progress,
    witnesses: Sequence[Witness] = (),
) -> Report:
    """Check the log up to its present head, then every read model up to its own position."""
    report = check_log(source.log, progress, witnesses)
    if not report.ok:
        return report
    for model in models:
        report.add(0, differences(source, model, progress))
    return report


def check_log(
    log: Log,
    progress: Progress = ignore_progress,
    witnesses: Sequence[Witness] = (),
    trusted: int = 0,
) -> Report:
    """Check every event up to the present head."""
    check = LogCheck(log, witnesses, trusted)
    while check.step():
        progress(check.report.position, check.goal)
    if check.report.position:
        progress(check.report.position, check.goal)
    return check.report


class LogCheck:
    """One walk through the log up to its present head, batch by batch.

    If it starts at a `trusted` position it checks only order and witnesses, because the rules need
    all earlier events.
    """

    def __init__(self, log: Log, witnesses: Sequence[Witness] = (), trusted: int = 0) -> None:
        self._log = log
        self._witnesses = witnesses
        self._rules = Rules(is_part=trusted > 0)
        self._poisoned = False
        self.report = Report(position=trusted, trusted=trusted)
        self.goal = log.head()
        self._rows = read_rows(log, trusted, self.goal)

    def step(self) -> bool:
        """Check the next batch; return False at the end, when the report is complete."""
        report, before = self.report, self.report.events
        try:
            for row in islice(self._rows, BATCH_EVENTS_MAX):
                if not self._poisoned:
                    self._check(row)
                if self._poisoned and not self._witnesses:
                    break
                if self._witnesses:
                    leaf = leaf_hash(*row)
                    for witness in self._witnesses:
                        witness.see(row, leaf)
                report.events += 1
                report.position = row.position
        except Poisoned as error:
            report.add(error.position, [error.reason])
            self._poisoned = True
        if report.events == before + BATCH_EVENTS_MAX and report.position < self.goal:
            return True
        self._finish()
        return False

    def _check(self, row: Stored) -> None:
        try:
            recorded = decoded(row)
        except Poisoned as error:
            self.report.add(error.position, [error.reason])
            self._poisoned = True
            return
        try:
            wrong = self._rules.check(row, recorded)
        except OSError:
            raise
        except Exception as error:  # noqa: BLE001  # A rule may fail on an impossible history.
            wrong = [f"it does not fit to what is before it ({type(error).__name__})"]
        self.report.add(row.position, wrong)
        if isinstance(recorded.event, Discontinuity.Noticed):
            event = recorded.event
            reason = (
                f"the failover to {event.server} has lost the events after position "
                f"{event.last_position}, up to {event.seen_position} at least"
            )
            self.report.losses.append(Failure(row.position, reason))

    def _finish(self) -> None:
        report = self.report
        if not self._poisoned:
            given, head = self._log.given(), self._log.head()  # Others append: first `given`.
            if head < given:
                missing = f"the log ends before it, but positions up to {given} were given out"
                report.add(head + 1, [missing])
            for position, reason in self._rules.check_end():
                report.add(position, [reason])
        for witness in self._witnesses:
            witness.testify(report)
