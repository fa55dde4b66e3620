"""Stories of aggregates: given a history, when something is asked, then these facts are recorded.

A story goes through the stored form all the time: what `given` and `when` did is encoded, decoded
and replayed, and the replay has to equal the live aggregate.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, Self, TypeVar

from eventsourcing.persistence import StoredEvent

from domain.log.aggregate import Event, Root
from domain.log.log import replay
from domain.log.mapper import MsgspecMapper

R = TypeVar("R", bound=Root)
E = TypeVar("E", bound=Exception)
MAPPER = MsgspecMapper()


@dataclass(frozen=True)
class Fact:
    """An expected event: its class and those of its fields that matter here."""

    event: type[Event]
    fields: dict[str, Any]


def fact(event: type[Event], **fields: Any) -> Fact:
    return Fact(event, fields)


def stored_events(aggregate: Root) -> list[StoredEvent]:
    """Encode the pending events of an aggregate, which has none afterwards."""
    return [MAPPER.to_stored_event(event) for event in aggregate.collect_events()]


def state_of(aggregate: Root) -> dict[str, Any]:
    """Return everything an aggregate knows, besides what is not stored and where it was read."""
    unstored = {"_pending_events"}
    return {name: value for name, value in vars(aggregate).items() if name not in unstored}


class Story(Generic[R]):
    """One aggregate from its first event on; `Story(Wallet.open(…))` asks for its beginning."""

    def __init__(self, beginning: R) -> None:
        self.aggregate = beginning
        self._history: list[StoredEvent] = []
        self._new: list[Event] = []
        self._error: Exception | None = None
        self._record()

    def given(self, *steps: Callable[[R], object]) -> Self:
        """Let history happen; nothing of it is new any more."""
        for step in steps:
            step(self.aggregate)
        self._record()
        assert self._error is None, self._error
        self._new = []
        return self

    def when(self, step: Callable[[R], object]) -> Self:
        """Ask for something and keep its refusal, if any, for `refused`."""
        assert self._error is None, self._error
        try:
            step(self.aggregate)
        except Exception as error:  # noqa: BLE001  # Which refusals are right is said by `refused`.
            self._error = error
        self._record()
        return self

    def then(self, *facts: Fact, **state: Any) -> Self:
        """Expect exactly these new events, and these attributes of the aggregate."""
        assert self._error is None, self._error
        assert [type(event) for event in self._new] == [each.event for each in facts]
        for event, expected in zip(self._new, facts, strict=True):
            assert expected.fields.items() <= vars(event).items(), event
        assert {name: getattr(self.aggregate, name) for name in state} == state
        self._new = []
        return self

    def refused(self, error: type[E], **state: Any) -> E:
        """Expect that the last `when` was refused and recorded nothing."""
        refusal = self._error
        self._error = None
        assert isinstance(refusal, error), refusal
        self.then(**state)
        return refusal

    def _record(self) -> None:
        events = stored_events(self.aggregate)
        self._history += events
        self._new += [MAPPER.to_domain_event(event) for event in events]  # type: ignore[misc]  # topics name our events only
        replayed = replay([MAPPER.to_domain_event(event) for event in self._history])  # type: ignore[misc]  # the same
        assert replayed is not None
        assert state_of(replayed) == state_of(self.aggregate)
