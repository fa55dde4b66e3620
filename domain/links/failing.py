"""The only way in which a link or plan change fails: the failure and its refunds in one commit.

The worker and the waiting request both call this when they notice a failure. The version of the
stream lets one of them win.
"""

from dataclasses import dataclass
from datetime import datetime
from typing import Any, TypeVar
from uuid import UUID

from domain.accounts.committer import Committer
from domain.accounts.paid_price import PaidPrice, RefundReason, Repayment, refund_reason
from domain.accounts.wallet import Metadata, Refund
from domain.cause import Cause, Clock
from domain.errors import (
    LATE,
    REFUSALS,
    Conflict,
    IdempotencyInProgress,
    IncompleteNetworkAnswer,
    InsufficientBalance,
    ProvisioningError,
    Refused,
    ServiceUnavailable,
    SpendingLimit,
)
from domain.links.bought_plan import BoughtPlan
from domain.links.esim import Esim
from domain.links.link import Link
from domain.links.lost_order import LostOrder
from domain.links.networks import Networks
from domain.links.plan_change import PlanChange
from domain.log.aggregate import Root
from domain.log.log import Log
from domain.money import format_amount, parse_amount

NOT_ENDED = "The {} could not be ended in time; it is ended and paid back within minutes."
NEW_KEY = "try again with a new Idempotency-Key"
OF_THE_NETWORK = {ProvisioningError.code, IncompleteNetworkAnswer.code}

W = TypeVar("W", bound=Link | PlanChange)


@dataclass(frozen=True)
class Failing:
    """Fails links and plan changes."""

    log: Log
    committer: Committer
    networks: Networks
    clock: Clock

    def expire(self, work: W, *, of_twin: bool = False) -> W:
        """Fail what nobody can wait for any longer, unless it is answered; return the newest state.

        Raises IdempotencyInProgress for what a twin of this request may still wait for.
        """
        if of_twin and not work.is_answered and self.clock() < work.requested.deadline:
            raise IdempotencyInProgress

        def end(newest: W) -> None:
            if not newest.is_answered:
                self.fail(newest, ProvisioningError(LATE), outcome_known=False)

        kind = "link" if isinstance(work, Link) else "change"
        return self.log.update(work, end, ServiceUnavailable(NOT_ENDED.format(kind)))

    def fail(self, work: Link | PlanChange, refusal: Refused, *, outcome_known: bool) -> None:
        """End it and refund what was not done; raises Conflict when others were first.

        `outcome_known` is about the last attempt only; each earlier attempt had an unknown outcome.
        """
        cause, intent = Cause(self.clock(), work.requested.request_id), work.intent
        # When its calls can no longer have an effect; None if that is now. A call may start as late
        # as the end of its intent.
        settled_at = None
        if intent is not None and not (outcome_known and intent.attempt == 1):
            settled_at = intent.until + self.networks.of(work.network).settles_after
        if isinstance(work, Link):
            refunds, others = self._fail_link(work, refusal, settled_at, cause)
        else:
            refunds, others = self._fail_change(work, refusal, settled_at, cause)
        self.committer.commit_entries(work.organization_id, refunds, cause, work, *others)

    def _fail_link(
        self, link: Link, refusal: Refused, settled_at: datetime | None, cause: Cause
    ) -> tuple[list[Refund], list[Root]]:
        """Refund all its money; keep its eSIM from others while the network may still use it."""
        details = {name: str(value) for name, value in refusal.details.items()}
        price, about = link.requested.price, link.requested.plan
        refund = link.fail(refusal.code, details, settled_at, cause)
        others = list[Root]()
        if link.iccid is not None and settled_at is not None:
            esim = self.log.get(Esim, Esim.id_of(link.network, link.iccid))
            esim.quarantine(link.id, settled_at, cause)
            others.append(esim)
        if link.ordered_since is not None and settled_at is not None:
            settles_after = self.networks.of(link.network).settles_after
            others.append(LostOrder.open(link, settles_after, cause))
        facts = ("Refund of a failed activation", purchase(link.id, about))
        return link.credit(price, refund, refund_reason(refusal.code), *facts), others

    def _fail_change(
        self, change: PlanChange, refusal: Refused, settled_at: datetime | None, cause: Cause
    ) -> tuple[list[Refund], list[Root]]:
        """Refund its present step and all later ones."""
        failed = change.fail(refusal.code, settled_at, cause, refusal.details.get("reason"))
        refunds = _refunds_of(change, failed, refund_reason(refusal.code))
        if settled_at is not None:
            return refunds, []
        link = self.log.get(Link, change.link_id)
        if link.open_change != change.id:  # Another process has ended the change.
            raise Conflict(change.id)
        change.finish(link, cause)
        return refunds, [link]


def refusal_of_link(link: Link) -> Refused:
    """Return what the sender of a failed request is told, at first and every later time."""
    failure, price = link.failure, link.requested.price
    assert failure is not None
    details = failure.details
    if failure.code == InsufficientBalance.code:
        required, available = parse_amount(details["required"]), parse_amount(details["available"])
        return InsufficientBalance(required, available, details["currency"])
    if failure.code == SpendingLimit.code:
        required, spent, limit = (_signed(details[n]) for n in ("required", "spent", "limit"))
        return SpendingLimit(required, spent, limit, details["currency"])
    if failure.code not in OF_THE_NETWORK:
        return REFUSALS[failure.code]()
    refunded = failure.refund.amount_micros if failure.refund is not None else 0
    text = _refund_text(refunded, price) if refunded else "nothing was taken"
    # The key of a sender who did not wait stays bound to this failure.
    again = NEW_KEY if link.requested.unawaited else "try again"
    reason = details.get("reason")
    called = reason != LATE or bool(refunded or link.iccid or link.ordered_since)
    return _of_the_network(
        failure.code, reason, text, again=again, started=called, refunded=format_amount(refunded)
    )


def _signed(amount: str) -> int:
    return parse_amount(amount.removeprefix("-")) * (-1 if amount.startswith("-") else 1)


def refusal_of_change(change: PlanChange) -> Refused:
    """Return what the sender of a failed change is told, with the parts that were done."""
    failure = change.failure
    assert failure is not None
    refunded = sum(refund.amount_micros for refund in failure.refunds)
    price = next((each.price for each in change.requested.additions if each.price), None)
    said = [_refund_text(refunded, price) if refunded else "nothing was taken for it"]
    again = "try again"
    if change.removed or change.added:
        said.append("what was done before it stays")
        again = "send the rest with a new Idempotency-Key"
    called = change.intent is not None or bool(change.removed or change.added)
    return _of_the_network(
        failure.code,
        failure.reason,
        *said,
        again=again,
        started=called or failure.reason != LATE,
        refunded=format_amount(refunded),
        removed=[str(each.activation_id) for each in change.removed],
        added=[str(each.plan.plan_id) for each in change.added],
    )


def _of_the_network(
    code: str, reason: str | None, *texts: str, again: str, started: bool, **details: Any
) -> Refused:
    if code == IncompleteNetworkAnswer.code:
        return IncompleteNetworkAnswer(*texts, **details)
    return ProvisioningError(reason, *texts, again=again, started=started, **details)


def _refund_text(micros: int, price: PaidPrice | None) -> str:
    assert price is not None
    return f"{format_amount(micros)} {price.currency} has been refunded"


def purchase(link_id: UUID, plan: BoughtPlan) -> Metadata:
    """Return what the wallet entries of a plan say about it."""
    return {"link_id": str(link_id), "plan_id": str(plan.plan_id), "plan_name": plan.name}


def _refunds_of(change: PlanChange, refunds: list[Repayment], reason: RefundReason) -> list[Refund]:
    paid = [each for each in change.requested.additions[len(change.added) :] if each.price]
    return [
        entry
        for refund, each in zip(refunds, paid, strict=True)
        for entry in change.credit(
            *(each.price, refund, reason, "Refund of a failed top-up"),
            purchase(change.link_id, each.plan),
        )
    ]
