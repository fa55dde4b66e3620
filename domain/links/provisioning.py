"""The steps of a link as a pure table: stage and moment give the next step, for `workers.links`.

| stage | when | step |
|---|---|---|
| requested | the deadline has passed | FAIL |
| requested, network not configured | else | WAIT for another worker |
| requested, of a stock | else | RESERVE an eSIM: with the charge and the intent, then the call |
| requested, by order | else | ORDER: the charge and the intent, then the call |
| reserved | the deadline has passed | FAIL, with the refund |
| reserved, as earlier releases left it | else | CREATE the endpoint: an intent, then the call |
| endpoint requested | the deadline has passed | FAIL, with the refund |
| endpoint requested | else | LOOK_UP the outcome of the call: adopt it, or `after_nothing` |
| ordering | the deadline has passed | FAIL, with the refund and a `LostOrder` |
| ordering | else | FIND_ORDER: adopt one that `may_adopt`, or `after_no_order` |
| active | its status intent has run out | SETTLE_STATUS |
| active | the intent to end it has run out | SETTLE_END |
| failed, an eSIM held | | CLEAN_UP: look for an endpoint, remove it or free the eSIM |
| endpoint removed | | RELEASE the eSIM |
| active, ended | | NOTHING |

An eSIM comes with its order, so a link that orders holds none. `domain.links.lost_order` looks for
orders that no link got.
"""

from collections.abc import Mapping
from datetime import datetime, timedelta
from enum import StrEnum

from domain.cause import lies_ahead
from domain.links.link import Link, Stage
from domain.links.lost_order import APART
from domain.links.network import Order, Shape

INTENTS_MAX = 5  # Creations started; a link that has killed five workers would kill a sixth.


class Step(StrEnum):
    """What must be done for a link now."""

    NOTHING = "nothing"
    WAIT = "wait"
    RESERVE = "reserve"
    CREATE = "create"
    LOOK_UP = "look_up"
    ORDER = "order"
    FIND_ORDER = "find_order"
    FAIL = "fail"
    CLEAN_UP = "clean_up"
    RELEASE = "release"
    SETTLE_STATUS = "settle_status"
    SETTLE_END = "settle_end"


UNFINISHED = {
    Stage.REQUESTED: Step.RESERVE,
    Stage.RESERVED: Step.CREATE,
    Stage.ENDPOINT_REQUESTED: Step.LOOK_UP,
    Stage.ORDERING: Step.FIND_ORDER,
}


BEGIN: Mapping[Shape | None, Step] = {
    "stock": Step.RESERVE,
    "order": Step.ORDER,
    None: Step.WAIT,
}


def next_step(link: Link, now: datetime, shape: Shape | None = "stock") -> Step:
    """Return what must be done at this moment for a link on a network of this shape.

    `shape` is None if the network is not configured here; another worker may know it.
    """
    if link.stage in UNFINISHED:
        if now >= link.requested.deadline:
            return Step.FAIL
        return BEGIN[shape] if link.stage is Stage.REQUESTED else UNFINISHED[link.stage]
    if link.stage is Stage.FAILED:
        return Step.CLEAN_UP
    if link.stage is Stage.ENDPOINT_REMOVED:
        return Step.RELEASE
    intent = link.status_intent
    if intent is not None and not lies_ahead(intent.until, now):
        return Step.SETTLE_STATUS
    if link.end_intent is not None and not lies_ahead(link.end_intent.until, now):
        return Step.SETTLE_END
    return Step.NOTHING


def after_nothing(link: Link, now: datetime, *, creates_once: bool = True) -> Step:
    """Return what follows when the network shows no endpoint for an open intent.

    Until its time-out the call may still be under way, so it is repeated or given up only then.
    Without `creates_once` a repeat might create two, so we wait for the deadline instead.
    """
    assert link.intent is not None
    if not creates_once or lies_ahead(link.intent.until, now):
        return Step.WAIT
    return Step.FAIL if link.attempts >= INTENTS_MAX else Step.CREATE


def may_adopt(link: Link, order: Order, now: datetime, *, by_reference: bool) -> bool:
    """Tell whether a link whose reply was lost may take an unclaimed order.

    If the network keeps our reference, it must be the link's own order. Otherwise equal orders are
    interchangeable: any order that is not older than the intent will do, but only once the call is
    over, because until then the reply may still come.
    """
    if by_reference:
        return order.reference == str(link.id)
    assert link.intent is not None
    assert link.ordered_since is not None
    is_over = not lies_ahead(link.intent.until, now)
    return is_over and order.placed_at >= link.ordered_since - APART


def after_no_order(link: Link, settles_after: timedelta, now: datetime) -> Step:
    """Return what follows when the network shows no order that a link may adopt.

    If we repeated the order while the first one may still appear, we might buy two.
    """
    assert link.intent is not None
    if now < link.intent.until + settles_after:
        return Step.WAIT
    return Step.FAIL if link.attempts >= INTENTS_MAX else Step.ORDER


def after_no_endpoint(link: Link, now: datetime) -> Step:
    """Return what follows when the network shows no endpoint for a failed link."""
    assert link.failure is not None
    settled_at = link.failure.settled_at
    return Step.RELEASE if settled_at is None or now >= settled_at else Step.WAIT
