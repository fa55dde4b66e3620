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

Six rows are all calls there are. Each is a class that says what is its own; `domain.links.driver`
does the rest. A row of a request has no deadline; what a worker makes fails at that of its request.

| row | started by | repeated | looked up by | cleaned up when it has failed |
|---|---|---|---|---|
| `CreateEndpoint` | a worker | if the network creates once | its eSIM | endpoint and eSIM freed |
| `PlaceOrder` | a worker | once settled | its reference, or plan and time | by `lost_order` |
| `AddPlan` | a worker | if the network adds once | an add-on nobody has | add-on removed |
| `RemovePlan` | a worker | yes | its add-on | what is done stays done |
| `SetStatus` | its request | never | the status | |
| `EndLink` | its request | never | the endpoint, the status or the plans | |

`domain.links.lost_order` looks for orders that no link got, without an intent.
"""

from datetime import datetime, timedelta
from enum import StrEnum
from typing import Literal

from domain.cause import lies_ahead
from domain.links.link import Link, Stage
from domain.links.network import Shape
from domain.links.plan_change import PlanChange

INTENTS_MAX = 5  # Calls started; work that has killed five workers would kill a sixth.

# When a call may be made again whose outcome the network does not show: once its time-out has
# passed, because repeating it is safe; once it can have no more effect; or not at all. Then it is
# given up at the deadline, or without one as soon as it can have no more effect.
Repeat = Literal["safe", "once_settled", "at_deadline", "never"]


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
        intent = work.open_call
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
    until: datetime,
    now: datetime,
    settles_after: timedelta,
    repeat: Repeat,
) -> Step:
    """Return what follows when the network does not show the outcome of a call until `until`.

    `settles_after` is the network's. Until its time-out the call may still be under way.
    """
    if repeat == "at_deadline":
        return Step.WAIT
    if lies_ahead(until, now) if repeat == "safe" else now < until + settles_after:
        return Step.WAIT
    is_last = repeat == "never" or work.attempts >= INTENTS_MAX
    return Step.GIVE_UP if is_last else Step.START


def is_settled(work: Link | PlanChange, settles_after: timedelta, now: datetime) -> bool:
    """Tell whether the network can no longer do the call at which something failed.

    `settles_after` is the network's. The call may have been repeated after the failure.
    """
    assert work.failure is not None
    settled_at = work.failure.settled_at
    if settled_at is None or work.intent is None:
        return True
    return now >= max(settled_at, work.intent.until + settles_after)
