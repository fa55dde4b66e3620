"""The auditor reads the whole log and checks its order, every invariant, and every read model."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from domain.log.discontinuity import Discontinuity
from domain.log.log import Log, Poisoned
from projections.audit.invariants import Invariants
from projections.engine.database import Database
from projections.engine.positions import Positions
from projections.engine.read_model import ReadModel
from projections.engine.rebuild import Progress, ignore_progress
from projections.engine.verify import differences

BATCH_EVENTS_MAX = 2_000
FAILURES_MAX = 100  # The first failures show how a log is broken; it need not be listed whole.


@dataclass(frozen=True, slots=True)
class Failure:
    """What is wrong, and the position at which it shows (0: at no single position)."""

    position: int
    reason: str


@dataclass
class Report:
    """The outcome of an audit over the events up to a position."""

    events: int = 0
    position: int = 0
    losses: list[Failure] = field(default_factory=list)  # Known losses, which are not failures.
    failures: list[Failure] = field(default_factory=list)

    @property
    def ok(self) -> bool:
        """Tell whether nothing is wrong."""
        return not self.failures

    def note(self, position: int, reasons: Sequence[str]) -> None:
        """Add failures, up to `FAILURES_MAX`."""
        room = FAILURES_MAX - len(self.failures)
        self.failures.extend(Failure(position, reason) for reason in reasons[:room])


def verify(
    log: Log,
    database: Database,
    positions: Positions,
    models: Sequence[ReadModel],
    progress: Progress = ignore_progress,
) -> Report:
    """Check the log up to its present head, then every read model up to its own position."""
    report = check_log(log, progress)
    if not report.ok:
        return report
    for model in models:
        report.note(0, differences(log, database, positions, model, progress))
    return report


def check_log(log: Log, progress: Progress = ignore_progress) -> Report:
    """Check order and invariants of every event up to the present head."""
    report, goal = Report(), log.head()
    invariants = Invariants()
    while report.position < goal:
        try:
            batch = log.read(report.position, BATCH_EVENTS_MAX)
        except Poisoned as error:
            report.note(error.position, [error.reason])
            return report
        for recorded in batch:
            if recorded.position > goal:
                break
            if recorded.position <= report.position:
                report.note(recorded.position, ["the position does not rise"])
            report.note(recorded.position, invariants.check(recorded))
            if isinstance(recorded.event, Discontinuity.Noticed):
                report.losses.append(Failure(recorded.position, _loss(recorded.event)))
            report.events += 1
            report.position = recorded.position
        if not batch:
            break
        progress(report.position, goal)
    given, head = log.given(), log.head()  # In this order, because others may append in between.
    if head < given:
        report.note(
            head + 1, [f"the log ends before it, but positions up to {given} were given out"]
        )
    for position, reason in invariants.check_end():
        report.note(position, [reason])
    return report


def _loss(event: Discontinuity.Noticed) -> str:
    return (
        f"the failover to {event.server} has lost the events after position "
        f"{event.last_position}, up to {event.seen_position} at least"
    )
