"""What can go wrong while links are worked on: errors, deaths, late effects, others in between."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, get_args

from hypothesis import strategies as st

from domain.network import AvailableEsim, NoEndpoint, OutcomeUnknown, Rejected
from domain.ports import Unavailable
from tests.faulty_network import Killed
from tests.workers.link_lab import Lab
from tests.workers.meanwhile import nothing
from tests.workers.places import When, die

ESIMS_SHOWN = 2  # So few that links run for the same one.
COMMITS_MAX, READS_MAX = 6, 12  # About as many as one piece of work has.

READS = {"available_esims", "find_endpoint", "usage", "lpa"}
CREATIONS = {"create_endpoint", "add_plan"}
LATE = {*CREATIONS, "remove_plan", "remove_endpoint"}

Error = Callable[[], BaseException]
Other = Literal["a waiting request", "another worker", "a reader"]
OTHERS: tuple[Other, ...] = get_args(Other)

# What may be called, the calls that matter most more often.
BUYING = [*["create_endpoint"] * 4, "find_endpoint", "available_esims", "lpa"]
CHANGING = [*["add_plan"] * 3, *["remove_plan"] * 2, "usage"]
SWITCHING = ["suspend", "resume", "usage"]
CLEANING = ["find_endpoint", "remove_endpoint", "release_esim"]


@dataclass(frozen=True)
class Fails:
    """A call of the network fails before it gets there, or after it has done its work.

    So many such calls are let through before it.
    """

    when: When
    call: str
    error: Error
    through: int

    def arm(self, lab: Lab, others: "Others") -> None:
        del others
        happens = lab.network.before if self.when == "before" else lab.network.after
        happens(self.call, *[nothing] * self.through, self.error())


@dataclass(frozen=True)
class Late:
    """Calls meet their time-out, so many in a row, and have their effect long after it.

    It comes after that share of the time in which the port promises it. The call after them may
    fail at once.
    """

    call: str
    share: float
    count: int
    then: Error | None

    def arm(self, lab: Lab, others: "Others") -> None:
        del others
        for _ in range(self.count):
            lab.late.later(self.call, self.share * lab.late.settles_after.total_seconds())
        if self.then is not None:
            lab.network.before(self.call, *[nothing] * self.count, self.then())


@dataclass(frozen=True)
class Meanwhile:
    """Somebody else comes between a worker and its call."""

    when: When
    call: str
    other: Other

    def arm(self, lab: Lab, others: "Others") -> None:
        happens = lab.network.before if self.when == "before" else lab.network.after
        happens(self.call, others[self.other])


@dataclass(frozen=True)
class Between:
    """Somebody else comes between two commits or two reads of the log, or the end does."""

    places: Literal["commits", "reads"]
    number: int
    when: When
    other: Other | None

    def arm(self, lab: Lab, others: "Others") -> None:
        places = lab.commits if self.places == "commits" else lab.reads
        places.at(self.number, self.when, die if self.other is None else others[self.other])


Fault = Fails | Late | Meanwhile | Between
Others = dict[Other, Callable[[], object]]
WHEN: tuple[When, When] = ("before", "after")
THROUGH_MAX = 2
LATE_SHARES = (0.05, 0.3, 0.6, 0.8, 0.99)
THEN: tuple[Error | None, ...] = (None, Unavailable, Killed)


def faults(*calls: str) -> st.SearchStrategy[list[Fault]]:
    """Return a few faults of these calls at a time; one that is named more often comes more often.

    They are lists to choose from, because building each anew takes longer than what it does.
    """
    fails = [
        Fails(when, call, error, through)
        for call in calls
        for when, error in _errors_of(call)
        for through in range(THROUGH_MAX + 1)
    ]
    late = [
        Late(call, share, count, then)
        for call in calls
        if call in LATE
        for share in LATE_SHARES
        for count in (1, 2, 3)
        for then in THEN
    ]
    meanwhile = [
        Meanwhile(when, call, other) for when in WHEN for call in calls for other in OTHERS
    ]
    commits = [
        Between("commits", number, when, other)
        for number in range(1, COMMITS_MAX + 1)
        for when in WHEN
        for other in (None, *OTHERS)
    ]
    reads = [
        Between("reads", number, "after", other)
        for number in range(1, READS_MAX + 1)
        for other in OTHERS
    ]
    kinds: list[list[Fault]] = [[*fails], [*late], [*meanwhile], [*commits, *reads]]
    return st.lists(st.one_of([_any_of(each) for each in kinds if each]), max_size=3)


def _any_of(choices: list[Fault]) -> st.SearchStrategy[Fault]:
    """Choose by index: hypothesis would print the whole list again and again."""
    return st.integers(0, len(choices) - 1).map(lambda index: choices[index])


def _errors_of(call: str) -> list[tuple[When, Error]]:
    """Return what the port allows a call to fail with, before its effect and after it."""
    if call in READS:
        return [("before", Unavailable), ("before", Killed), ("after", Killed)]
    unheard: list[tuple[When, Error]] = [
        (when, error) for when in WHEN for error in (OutcomeUnknown, Killed)
    ]
    refused: list[Error] = [Unavailable, Rejected, *[NoEndpoint][: call in CREATIONS]]
    return [*unheard, *(("before", error) for error in refused)]


class Scarce:
    """Shows few of the free eSIMs of a network, and always the same."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner

    def __getattr__(self, call: str) -> Any:
        return getattr(self._inner, call)

    def available_esims(self, *wanted: Any, page: int, **more: Any) -> list[AvailableEsim]:
        found = self._inner.available_esims(*wanted, page=page, **more)
        return [] if page else list(found[:ESIMS_SHOWN])
