"""What an audit has found."""

from collections.abc import Sequence
from dataclasses import dataclass, field

FAILURES_MAX = 100  # The first ones show how a log is broken.


@dataclass(frozen=True, slots=True)
class Failure:
    """What is wrong, and the position at which it shows (0: at no single position)."""

    position: int
    reason: str


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether the log is what a checkpoint signed; `reason` says why not."""

    name: str
    position: int
    size: int
    holds: bool
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Uncovered:
    """The newest events that no given checkpoint covers; both positions are 0 if there are none.

    Against one who has rewritten these, with all that belongs to them, no check helps.
    """

    events: int
    first_position: int
    last_position: int


@dataclass
class Report:
    """The outcome of an audit over the events up to a position.

    `trusted` is the position up to which nothing was checked, `leaves` the number of events that
    were compared with kept leaves. `explained` counts checkpoints that fail but are no failures,
    because the log records a loss. That is no proof: who can change the log can also record a loss.
    """

    events: int = 0
    position: int = 0
    trusted: int = 0
    leaves: int = 0
    explained: int = 0
    losses: list[Failure] = field(default_factory=list)  # Known losses, which are not failures.
    failures: list[Failure] = field(default_factory=list)
    checkpoints: list[Verdict] = field(default_factory=list)
    uncovered: Uncovered | None = None  # None: no checkpoint was given.

    @property
    def ok(self) -> bool:
        return not self.failures

    def add(self, position: int, reasons: Sequence[str]) -> None:
        room = FAILURES_MAX - len(self.failures)
        self.failures.extend(Failure(position, reason) for reason in reasons[:room])
