"""Checks that a plan change does each step once and in order, and costs what it added."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from uuid import UUID

from domain.accounts.wallet import Reference
from domain.ids import derive_id
from domain.links.link import Link
from domain.links.plan_change import Addition, PlanChange, Removal
from projections.audit.bookings import Bookings, Reason
from projections.audit.promises import Promises

Done = PlanChange.PlanRemovalDone | PlanChange.PlanAdditionDone
OfRemoval = PlanChange.PlanRemovalStarted | PlanChange.PlanRemovalDone


@dataclass(slots=True)
class _Change:
    """The state of a change: its steps in order, and how many of them are done."""

    requested: PlanChange.Requested
    steps: list[Removal | Addition]
    done: int = 0
    is_begun: bool = False
    has_failed: bool = False
    # Whether the current step may start again: not after it certainly failed.
    may_repeat: bool = True

    @property
    def step(self) -> Removal | Addition | None:
        return self.steps[self.done] if self.done < len(self.steps) else None

    def additions(self, *, done: bool) -> list[Addition]:
        steps = self.steps[: self.done] if done else self.steps[self.done :]
        return [each for each in steps if isinstance(each, Addition)]


@dataclass
class PlanChangeInvariants:
    """Every change that has not finished."""

    _bookings: Bookings
    _promises: Promises
    _changes: dict[UUID, _Change] = field(default_factory=dict)

    def check(self, position: int, event: PlanChange.Event) -> Iterator[str]:
        if isinstance(event, PlanChange.Requested):
            yield from self._request(position, event)
            return
        change = self._changes.get(event.originator_id)
        if change is None:
            yield f"plan change {event.originator_id} moves before it was requested, or at its end"
            return
        asked = change.requested
        if (event.organization_id, event.link_id) != (asked.organization_id, asked.link_id):
            yield f"plan change {event.originator_id} changes its organization or link"
        if isinstance(event, PlanChange.StepStarted):
            yield from _start(event, change)
        elif isinstance(event, Done):
            yield from self._do(position, event, change)
        elif isinstance(event, PlanChange.Failed):
            yield from self._fail(position, event, change)
        elif isinstance(event, PlanChange.Finished):
            yield from self._finish(position, event, change)

    def _request(self, position: int, event: PlanChange.Requested) -> Iterator[str]:
        change = _Change(event, [*event.removals, *event.additions])
        self._changes[event.originator_id] = change
        if not change.steps:
            yield f"plan change {event.originator_id} asks for nothing"
        missing = f"plan change {event.originator_id} was requested and not opened"
        opened = (event.link_id, event.organization_id)
        self._promises.make(position, (Link.ChangeOpened, event.originator_id), opened, missing)
        for addition in event.additions:
            if _micros(addition) != addition.plan.price_micros:
                yield f"plan change {event.originator_id} costs another sum than its plans"
            if addition.price is not None:
                self._bookings.announce_charge(_reason(position, event), addition.price)

    def _do(self, position: int, event: Done, change: _Change) -> Iterator[str]:
        step, is_begun = change.step, change.is_begun
        if not _is_present(event, change):
            yield f"plan change {event.originator_id} does a step out of order, or twice"
        if not is_begun:
            yield f"plan change {event.originator_id} does a step that it has not begun"
        if change.has_failed and isinstance(event, PlanChange.PlanAdditionDone):
            yield f"plan change {event.originator_id} adds a plan after it has failed"
        change.done, change.is_begun = event.index + 1, False
        change.may_repeat = not change.has_failed
        if step is not None:
            self._announce(position, event, step)

    def _announce(self, position: int, event: Done, step: Removal | Addition) -> None:
        """Expect the event of this step on the link."""
        on_link: type[Link.Event] = Link.PlanRemoved
        fact: object = event.link_id
        if isinstance(event, PlanChange.PlanAdditionDone):
            on_link, fact = Link.PlanAdded, (event.link_id, step.plan, event.addon_id)
        key = (on_link, event.originator_id, step.activation_id)
        missing = f"step {event.index} of plan change {event.originator_id} is not on its link"
        self._promises.make(position, key, fact, missing)

    def _fail(self, position: int, event: PlanChange.Failed, change: _Change) -> Iterator[str]:
        if change.has_failed or event.index != change.done or change.step is None:
            yield f"plan change {event.originator_id} fails twice, or at a step that is done"
        change.has_failed, change.may_repeat = True, event.settled_at is not None
        charged = sum(map(_micros, change.requested.additions))
        refunded = sum(refund.amount_micros for refund in event.refunds)
        if charged - refunded != sum(map(_micros, change.additions(done=True))):
            yield f"plan change {event.originator_id} keeps another sum than it added plans for"
        lost = [each for each in change.additions(done=False) if each.price is not None]
        follow = [derive_id("refund", each.activation_id) for each in lost]
        if [refund.transaction_id for refund in event.refunds] != follow:
            yield f"plan change {event.originator_id} names refunds that are not those of its steps"
        for index, refund in enumerate(event.refunds):
            price = lost[index].price if index < len(lost) else None
            self._bookings.announce_refund(_reason(position, event), refund, price)

    def _finish(self, position: int, event: PlanChange.Finished, change: _Change) -> Iterator[str]:
        if not change.has_failed and change.step is not None:
            yield f"plan change {event.originator_id} finishes with open steps"
        missing = f"plan change {event.originator_id} has finished and was not closed"
        key = (Link.ChangeClosed, event.originator_id)
        self._promises.make(position, key, event.link_id, missing)
        for addition in change.additions(done=True):
            self._bookings.forget(addition.price)
        del self._changes[event.originator_id]


def _start(event: PlanChange.StepStarted, change: _Change) -> Iterator[str]:
    if not change.may_repeat or not _is_present(event, change):
        yield f"plan change {event.originator_id} begins a step that is not the present one"
    change.is_begun = True


def _is_present(event: PlanChange.StepStarted | Done, change: _Change) -> bool:
    kind = Removal if isinstance(event, OfRemoval) else Addition
    return event.index == change.done and isinstance(change.step, kind)


def _micros(addition: Addition) -> int:
    return addition.price.amount_micros if addition.price is not None else 0


def _reason(position: int, event: PlanChange.Event) -> Reason:
    reference = Reference("plan_change", str(event.originator_id))
    return Reason(position, event.organization_id, reference, "topup")
