"""The saga as a pure table: what the log says of a link or change, and the time, give the step.

Each call at a network follows an intent in the log; only its writer calls, until it runs out. The
outcome is looked up before anything is repeated. This is alike for all of them:

| link or change | when | step |
|---|---|---|
| an active link | an intent to switch or end it has run out | LOOK_UP |
| an active or ended link, a finished change | else | NOTHING |
| failed, something held or its outcome unknown | | CLEAN_UP: undo a late result, then finish |
| under way | the deadline has passed | GIVE_UP, with the refunds |
| under way, an open intent | else | LOOK_UP the outcome: settle it, or `after_nothing` |
| under way | the network is not configured here | WAIT for another worker |
| under way | else | START: an intent, the first one with its price, then the call |

| call | started by | repeated | looked up by |
|---|---|---|---|
| `create_endpoint` (`workers.links`) | a worker | if the network creates once | its eSIM |
| `order` (`workers.links`) | a worker | once it is settled | its reference, or plan and time |
| `add_plan` (`workers.plan_changes`) | a worker | if the network adds once | an add-on nobody has |
| `remove_plan` (`workers.plan_changes`) | a worker | yes | its add-on |
| `SetStatus` | its request | never | the status |
| `EndLink` | its request | never | the endpoint, the status or the plans |

`domain.links.lost_order` looks for orders that no link got, without an intent.
"""

from datetime import datetime, timedelta
from enum import StrEnum

from domain.cause import lies_ahead
from domain.links.link import Link, Stage
from domain.links.network import Shape
from domain.links.plan_change import PlanChange

INTENTS_MAX = 5  # Calls started; work that has killed five workers would kill a sixth.


class Step(StrEnum):
    """What must be done now."""

    NOTHING = "nothing"
    WAIT = "wait"
    START = "start"
    LOOK_UP = "look_up"
    GIVE_UP = "give_up"
    CLEAN_UP = "clean_up"


def next_step(work: Link | PlanChange, now: datetime, shape: Shape | None = "stock") -> Step:
    """Return what must be done at this moment, on a network of this shape.

    `shape` is None if the network is not configured here; another worker may know it.
    """
    if isinstance(work, Link) and work.stage in {Stage.ORDERED, Stage.ACTIVE, Stage.ENDED}:
        intent = work.status_intent or work.end_intent
        is_over = intent is not None and not lies_ahead(intent.until, now)
        return Step.LOOK_UP if is_over else Step.NOTHING
    if isinstance(work, PlanChange) and work.finished_at is not None:
        return Step.NOTHING
    if work.failure is not None:
        return Step.CLEAN_UP
    if now >= work.requested.deadline:
        return Step.GIVE_UP
    if work.intent is not None:
        return Step.LOOK_UP
    return Step.WAIT if shape is None else Step.START


def after_nothing(
    work: Link | PlanChange,
    now: datetime,
    settles_after: timedelta | None = None,
    *,
    may_repeat: bool = True,
) -> Step:
    """Return what follows when the network does not show the outcome of an open intent.

    Until its time-out the call may still be under way, so it is repeated or given up only then. One
    that a repeat might do twice waits until it is settled, `settles_after` its end, or without
    `may_repeat` for the deadline.
    """
    assert work.intent is not None
    until = work.intent.until
    is_open = lies_ahead(until, now) if settles_after is None else now < until + settles_after
    if is_open or not may_repeat:
        return Step.WAIT
    return Step.GIVE_UP if work.attempts >= INTENTS_MAX else Step.START


def is_settled(work: Link | PlanChange, settles_after: timedelta, now: datetime) -> bool:
    """Tell whether the network can no longer do the call at which something failed.

    `settles_after` is the network's. The call may have been repeated after the failure.
    """
    assert work.failure is not None
    settled_at = work.failure.settled_at
    if settled_at is None or work.intent is None:
        return True
    return now >= max(settled_at, work.intent.until + settles_after)
