"""The only way in which a link or plan change fails: the failure and its refunds in one commit.

The worker and the waiting request both call this when they notice a failure. The version of the
stream lets one of them win.
"""

from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from domain.accounts.committer import Committer
from domain.accounts.paid_price import PaidPrice, RefundReason, Repayment, refund_reason
from domain.accounts.wallet import Metadata, Refund
from domain.cause import Cause, Clock
from domain.errors import (
    LATE,
    REFUSALS,
    REJECTED,
    UNREACHABLE,
    Conflict,
    IncompleteNetworkAnswer,
    InsufficientBalance,
    ProvisioningError,
    Refused,
    SpendingLimit,
)
from domain.links.bought_plan import BoughtPlan
from domain.links.esim import Esim, esim_id
from domain.links.link import Link
from domain.links.lost_order import LostOrder
from domain.links.network import NoEndpoint
from domain.links.networks import Networks
from domain.links.plan_change import PlanChange
from domain.log.log import Log
from domain.money import format_amount, parse_amount
from domain.provider_errors import ProviderError, Rejected

NEW_KEY = "try again with a new Idempotency-Key"
OF_THE_NETWORK = {ProvisioningError.code, IncompleteNetworkAnswer.code}


@dataclass(frozen=True)
class Failing:
    """Fails links and plan changes; every method raises Conflict when others were first."""

    log: Log
    committer: Committer
    networks: Networks
    clock: Clock

    def fail_link(self, link: Link, refusal: Refused, *, outcome_known: bool) -> None:
        """End a link that is not active yet and refund all its money."""
        cause = Cause(self.clock(), link.requested.request_id)
        settled_at = self._settled_at(link, outcome_known=outcome_known)
        details = {name: str(value) for name, value in refusal.details.items()}
        iccid = link.iccid
        refund = link.fail(refusal.code, details, settled_at, cause)
        left: list[Esim | LostOrder] = [*self._quarantined(link, iccid, settled_at, cause)]
        if link.ordered_since is not None and settled_at is not None:
            left.append(LostOrder.open(link, self.networks.of(link.network).settles_after, cause))
        refunds, price, about = list[Refund](), link.requested.price, link.requested.plan
        if refund is not None and price is not None:
            facts = ("Refund of a failed activation", purchase(link.id, about))
            refunds = [link.credit(price, refund, refund_reason(refusal.code), *facts)]
        self.committer.commit_entries(link.organization_id, refunds, cause, link, *left)

    def _settled_at(self, work: Link | PlanChange, *, outcome_known: bool) -> datetime | None:
        """Return when the calls of an intent can no longer have an effect; None if that is now.

        `outcome_known` is about the last attempt only; each earlier attempt had an unknown outcome.
        A call may start as late as the end of its intent.
        """
        intent = work.intent
        if intent is None or (outcome_known and intent.attempt == 1):
            return None
        return intent.until + self.networks.of(work.network).settles_after

    def _quarantined(
        self, link: Link, iccid: str | None, settled_at: datetime | None, cause: Cause
    ) -> list[Esim]:
        """Keep the eSIM of a failed link from others while the network may still use it."""
        if iccid is None or settled_at is None:
            return []
        esim = self.log.get(Esim, esim_id(link.network, iccid))
        if esim.link_id != link.id:  # Another process has failed the link and cleaned it up.
            raise Conflict(link.id)
        esim.quarantine(link.id, settled_at, cause)
        return [esim]

    def fail_change(self, change: PlanChange, refusal: Refused, *, outcome_known: bool) -> None:
        """End a plan change at its present step, and refund what was not done."""
        version, beaten = change.version, Conflict(change.id)

        def fail(newest: PlanChange) -> bool:
            if newest.version != version:
                return False
            self._fail_change(newest, refusal, outcome_known=outcome_known)
            return True

        # Most conflicts concern only the link, because reads append what they see to it.
        if not self.log.change(change, fail, beaten):
            raise beaten

    def _fail_change(self, change: PlanChange, refusal: Refused, *, outcome_known: bool) -> None:
        cause = Cause(self.clock(), change.requested.request_id)
        settled_at = self._settled_at(change, outcome_known=outcome_known)
        failed = change.fail(refusal.code, settled_at, cause, refusal.details.get("reason"))
        refunds = _refunds_of(change, failed, refund_reason(refusal.code))
        links = []
        if settled_at is None:
            link = self.log.get(Link, change.link_id)
            if link.open_change != change.id:  # Another process has ended the change.
                raise Conflict(change.id)
            change.finish(link, cause)
            links.append(link)
        self.committer.commit_entries(change.organization_id, refunds, cause, change, *links)


def refusal_of(error: ProviderError, deadline: datetime, now: datetime) -> Refused:
    """Return the refusal that the requester gets for an error of the network."""
    if isinstance(error, NoEndpoint):
        return IncompleteNetworkAnswer()
    if isinstance(error, Rejected):
        return ProvisioningError(REJECTED)
    return given_up(deadline, now)


def given_up(deadline: datetime, now: datetime) -> Refused:
    """Return the refusal for a network that gave no answer, before or after the deadline."""
    return ProvisioningError(LATE if now >= deadline else UNREACHABLE)


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
    told = _told_refund(refunded, price) if refunded else "nothing was taken"
    # The key of a sender who did not wait stays bound to this failure.
    again = NEW_KEY if link.requested.unawaited else "try again"
    reason = details.get("reason")
    begun = reason != LATE or bool(refunded or link.iccid or link.ordered_since)
    return _of_the_network(
        failure.code, reason, told, again=again, begun=begun, refunded=format_amount(refunded)
    )


def _signed(amount: str) -> int:
    return parse_amount(amount.removeprefix("-")) * (-1 if amount.startswith("-") else 1)


def refusal_of_change(change: PlanChange) -> Refused:
    """Return what the sender of a failed change is told, with the parts that were done."""
    failure = change.failure
    assert failure is not None
    refunded = sum(refund.amount_micros for refund in failure.refunds)
    price = next((each.price for each in change.requested.additions if each.price), None)
    told = [_told_refund(refunded, price) if refunded else "nothing was taken for it"]
    again = "try again"
    if change.removed or change.added:
        told.append("what was done before it stays")
        again = "send the rest with a new Idempotency-Key"
    begun = change.intent is not None or bool(change.removed or change.added)
    return _of_the_network(
        failure.code,
        failure.reason,
        *told,
        again=again,
        begun=begun or failure.reason != LATE,
        refunded=format_amount(refunded),
        removed=[str(each.activation_id) for each in change.removed],
        added=[str(each.plan.plan_id) for each in change.added],
    )


def _of_the_network(
    code: str, reason: str | None, *told: str, again: str, begun: bool, **details: Any
) -> Refused:
    if code == IncompleteNetworkAnswer.code:
        return IncompleteNetworkAnswer(*told, **details)
    return ProvisioningError(reason, *told, again=again, begun=begun, **details)


def _told_refund(micros: int, price: PaidPrice | None) -> str:
    assert price is not None
    return f"{format_amount(micros)} {price.currency} has been refunded"


def purchase(link_id: UUID, plan: BoughtPlan) -> Metadata:
    """Return what the wallet entries of a plan say about it."""
    return {"link_id": str(link_id), "plan_id": str(plan.plan_id), "plan_name": plan.name}


def _refunds_of(change: PlanChange, refunds: list[Repayment], reason: RefundReason) -> list[Refund]:
    paid = [each for each in change.requested.additions[len(change.added) :] if each.price]
    return [
        change.credit(
            *(addition.price, refund, reason, "Refund of a failed top-up"),
            purchase(change.link_id, addition.plan),
        )
        for refund, addition in zip(refunds, paid, strict=True)
        if addition.price is not None
    ]
