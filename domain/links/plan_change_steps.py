"""The steps of a plan change as a pure table: its events and the time give the next step.

| change | when | step |
|---|---|---|
| under way | the deadline has passed | FAIL, with the refunds |
| no open intent | the network is not configured here | WAIT for another worker |
| no open intent | else | BEGIN the next step: an intent, then the call |
| an open intent | else | LOOK_UP the outcome of the call: adopt it, or `after_nothing` |
| failed, its outcome unknown | | CLEAN_UP: remove a late add-on, then end; if the network does \
not show it for an hour, repeat the addition where that is safe, and remove that |
| finished | | NOTHING |

The functions below record each outcome in the change and its link, which are saved together.
"""

from collections.abc import Sequence
from datetime import datetime, timedelta
from enum import StrEnum

from domain.cause import Cause, lies_ahead
from domain.links.link import Link
from domain.links.network import Addon, Shape
from domain.links.plan_change import Addition, PlanChange, Removal
from domain.links.provisioning import INTENTS_MAX


class ChangeStep(StrEnum):
    """What must be done for a plan change now."""

    NOTHING = "nothing"
    WAIT = "wait"
    BEGIN = "begin"
    LOOK_UP = "look_up"
    FAIL = "fail"
    CLEAN_UP = "clean_up"


def next_step(change: PlanChange, now: datetime, shape: Shape | None = "stock") -> ChangeStep:
    """Return what must be done for a change at this moment."""
    if change.finished_at is not None:
        return ChangeStep.NOTHING
    if change.failure is not None:
        return ChangeStep.CLEAN_UP
    if now >= change.requested.deadline:
        return ChangeStep.FAIL
    if change.intent is not None:
        return ChangeStep.LOOK_UP
    return ChangeStep.WAIT if shape is None else ChangeStep.BEGIN


def after_nothing(change: PlanChange, now: datetime, *, adds_once: bool = True) -> ChangeStep:
    """Return what follows when the network does not show the outcome of an open intent.

    Without `adds_once` a repeat might add the plan twice, so we wait for the deadline instead.
    """
    assert change.intent is not None
    may_add_twice = not adds_once and isinstance(change.next, Addition)
    if may_add_twice or lies_ahead(change.intent.until, now):
        return ChangeStep.WAIT
    return ChangeStep.FAIL if change.attempts >= INTENTS_MAX else ChangeStep.BEGIN


def is_settled(change: PlanChange, settles_after: timedelta, now: datetime) -> bool:
    """Tell whether the network can no longer do the step at which a change failed.

    `settles_after` is the network's. The step may have been repeated after the failure.
    """
    assert change.failure is not None
    settled_at = change.failure.settled_at
    if settled_at is None or change.intent is None:
        return True
    return now >= max(settled_at, change.intent.until + settles_after)


def note_added(
    change: PlanChange, link: Link, addon: Addon, cause: Cause, *, adopted: bool
) -> None:
    """Note that the present addition is on the link; `adopted`: its reply was lost."""
    addition = change.next
    assert isinstance(addition, Addition)
    facts = {"index": change.done, "addon_id": addon.addon_id, "adopted": adopted}
    change.record(PlanChange.PlanAdditionDone, cause, **facts)
    link.add_plan(addition.activation_id, addition.plan, addon, cause)
    for each in _unbought(link, addition, addon):
        link.note_plan_left_over(each, addition.plan, cause)
    _finish_if_done(change, link, cause)


def note_removed(change: PlanChange, link: Link, cause: Cause) -> None:
    """Note that the present removal is done, after all if the change has failed at it."""
    assert isinstance(change.next, Removal)
    link.remove_plan(change.next.activation_id, cause)
    change.record(PlanChange.PlanRemovalDone, cause, index=change.done)
    _finish_if_done(change, link, cause)


def finish_left_over(addon_id: str, change: PlanChange, link: Link, cause: Cause) -> None:
    """End a failed change whose late add-on the network refuses to remove: an incident."""
    assert change.next is not None
    link.note_plan_left_over(addon_id, change.next.plan, cause)
    finish(change, link, cause)


def finish(change: PlanChange, link: Link, cause: Cause) -> None:
    """End a change of which nothing can happen any more."""
    change.record(PlanChange.Finished, cause)
    link.record(Link.ChangeClosed, cause, change_id=link.open_change)


def _unbought(link: Link, addition: Addition, addon: Addon) -> Sequence[str]:
    """Return add-ons of the same plan without an activation, such as when one was added twice.

    The first ones are left to activations whose add-on is not known.
    """
    known = {each.addon_id for each in link.activations.values()}
    rest = [each for each in addon.others if each not in known]
    named = addition.plan.provider_plan_id
    bought = [each for each in link.current_activations if each.addon_id is None]
    unknown = [each for each in bought if each.plan.provider_plan_id == named]
    return rest[len(unknown) :]


def _finish_if_done(change: PlanChange, link: Link, cause: Cause) -> None:
    if change.is_answered:
        finish(change, link, cause)
