"""What an outcome of a plan change means for the change and its link, which are saved at once."""

from domain.cause import Cause
from domain.link import Link
from domain.plan_change import Addition, PlanChange, Removal


def note_added(
    change: PlanChange, link: Link, addon_id: str | None, cause: Cause, *, adopted: bool
) -> None:
    """The present addition is on the link; `adopted` when its reply had been lost."""
    addition = change.next
    assert isinstance(addition, Addition)
    change.note_added(addon_id, cause, adopted=adopted)
    link.add_plan(addition.activation_id, addition.plan, addon_id, cause)
    _finish_if_done(change, link, cause)


def note_removed(change: PlanChange, link: Link, cause: Cause) -> None:
    """The present removal is done."""
    assert isinstance(change.next, Removal)
    link.remove_plan(change.next.activation_id, cause)
    change.note_removed(cause)
    _finish_if_done(change, link, cause)


def finish_removed(change: PlanChange, link: Link, cause: Cause) -> None:
    """The removal was done after all; the change stays failed, for what came after it was not."""
    assert isinstance(change.next, Removal)
    link.remove_plan(change.next.activation_id, cause)
    change.note_removed(cause)
    finish(change, link, cause)


def finish(change: PlanChange, link: Link, cause: Cause) -> None:
    """Nothing of the change can happen any more."""
    change.finish(cause)
    link.close_plan_change(cause)


def _finish_if_done(change: PlanChange, link: Link, cause: Cause) -> None:
    if change.next is None:
        finish(change, link, cause)
