"""The steps of a link as a pure table: stage and moment give the next step, for `workers.links`.

| stage | when | step |
|---|---|---|
| requested | the deadline has passed | FAIL |
| requested | else | RESERVE an eSIM: with the charge and the intent, then the call |
| reserved | the deadline has passed | FAIL, with the refund |
| reserved, as earlier releases left it | else | CREATE the endpoint: an intent, then the call |
| endpoint requested | the deadline has passed | FAIL, with the refund |
| endpoint requested | else | LOOK_UP what the call has come to: adopt it, or `after_nothing` |
| active | its status intent has run out | SETTLE_STATUS |
| failed, an eSIM held | | CLEAN_UP: look for an endpoint, remove it or free the eSIM |
| endpoint removed | | RELEASE the eSIM |
| active, ended | | NOTHING |
"""

from datetime import datetime
from enum import StrEnum

from domain.cause import lies_ahead
from domain.links.link import Link, Stage

ATTEMPTS_MAX = 5  # Creations started; a link that has killed five workers would kill a sixth.


class Step(StrEnum):
    """What must be done for a link now."""

    NOTHING = "nothing"
    WAIT = "wait"
    RESERVE = "reserve"
    CREATE = "create"
    LOOK_UP = "look_up"
    FAIL = "fail"
    CLEAN_UP = "clean_up"
    RELEASE = "release"
    SETTLE_STATUS = "settle_status"


UNFINISHED = {
    Stage.REQUESTED: Step.RESERVE,
    Stage.RESERVED: Step.CREATE,
    Stage.ENDPOINT_REQUESTED: Step.LOOK_UP,
}


def next_step(link: Link, now: datetime) -> Step:
    """Return what must be done for a link at this moment."""
    if link.stage in UNFINISHED:
        return Step.FAIL if now >= link.requested.deadline else UNFINISHED[link.stage]
    if link.stage is Stage.FAILED:
        return Step.CLEAN_UP
    if link.stage is Stage.ENDPOINT_REMOVED:
        return Step.RELEASE
    intent = link.status_intent
    if intent is not None and not lies_ahead(intent.until, now):
        return Step.SETTLE_STATUS
    return Step.NOTHING


def after_nothing(link: Link, now: datetime, *, creates_once: bool = True) -> Step:
    """Return what follows when the network shows no endpoint for an open intent.

    Until its time-out the call may still be under way; only then is it repeated, or given up. A
    network without `creates_once` might do both calls, so there the deadline is waited for.
    """
    assert link.intent is not None
    if not creates_once or lies_ahead(link.intent.until, now):
        return Step.WAIT
    return Step.FAIL if link.attempts >= ATTEMPTS_MAX else Step.CREATE


def after_no_endpoint(link: Link, now: datetime) -> Step:
    """Return what follows when the network shows no endpoint for a failed link."""
    assert link.failure is not None
    settled_at = link.failure.settled_at
    return Step.RELEASE if settled_at is None or now >= settled_at else Step.WAIT
