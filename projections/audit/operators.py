"""Checks who did it: every actor against the rights, every amount against the approval limit.

An event is judged by what was in force at its position, and nobody needs a right before the first
operator is registered. From then on every release has kept the actor of each command that needs a
right, so logs of any age are judged alike. What earlier releases did not ask has its beginning: who
made an approver's key counts from the first limit on. From the first limit that `covers` people on,
it must be the approver himself; people and prices take two; sums count, by charge and by day.
Commands take turns, so that what one has read of rights and limit holds where its events are.
"""

from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from types import MappingProxyType
from uuid import UUID

from domain.accounts.approvals import (
    ALONE_AFTER,
    PEOPLE,
    WITH_SECRET,
    ApprovalLimit,
    Proposal,
)
from domain.accounts.operator_acts import OperatorAct
from domain.accounts.operators import TAKE_TWO, Operator, Right
from domain.accounts.organization import ApiClient, Organization
from domain.accounts.prices import LookupPrice
from domain.accounts.refund_by_hand import RefundByHand
from domain.accounts.wallet import Adjustment, Deposit
from domain.cause import is_operator
from domain.links.link import Link
from domain.log.aggregate import ByOperator, Event
from projections.audit.promises import Promises

BELIEVED = timedelta(minutes=1)  # A revoked client is believed for a second, by clocks that differ.
MACHINE = "client:"  # Before the id of a payment service that is an actor.
DEMO = "serve-demo"  # The request of `serve --demo`, which names nobody and moves no money here.

# The right for the events of commands on a kind of aggregate; None: they need none.
RIGHTS: Mapping[str, Right | None] = MappingProxyType(
    {
        **dict.fromkeys(("organization", "wallet", "deposit", "adjustment", "proposal"), "money"),
        **dict.fromkeys(("number_lookup", "plan_change", "monthly_fee"), "money"),
        **dict.fromkeys(("bulk_job", "link"), "money"),
        **dict.fromkeys(("plan", "provider", "price"), "catalogue"),
        **dict.fromkeys(("api_client", "operator", "approval_limit", "webhook_endpoint"), "keys"),
        "erasure": "keys",
        "month": "audit",
        "webhook_request": None,
    }
)
ACTS: Mapping[str, Right] = MappingProxyType(
    {
        **dict.fromkeys(("key.renewed", "key.revoked", "installation.released"), "keys"),
        **dict.fromkeys(("tree.rebuilt", "checkpoint.signed"), "audit"),
    }
)
FIRST_PRICE = 2  # The version of the price that a setting was; its stream begins without one.
BY_OTHERS_TOO = ("bulk_job", "link", "webhook_endpoint", "month")  # And then without an actor.
SETTLED_LATER = (Link.Suspended, Link.Reactivated, Link.Ended)  # With the actor of the intent.


def right_of(event: Event) -> Right | None:
    """Return the right that the command of an event needs; None if it needs none."""
    noun, _, what = type(event).TOPIC.partition(".")  # type: ignore[attr-defined]  # every concrete event has one
    if isinstance(event, OperatorAct.Done):
        return ACTS.get(event.act)
    if isinstance(event, Proposal.Used):  # What is made with it needs its own.
        return None
    if isinstance(event, Proposal.Made) and event.organization_id is None:
        return "catalogue" if event.kind == "price" else "keys"
    return "approve" if what in {"approved", "granted", "rejected"} else RIGHTS[noun]


def may_be_of_others(event: Event) -> bool:
    """Tell whether partners, networks and the clock cause such events as well."""
    noun = type(event).TOPIC.partition(".")[0]  # type: ignore[attr-defined]  # as above
    return noun in BY_OTHERS_TOO and not isinstance(event, RefundByHand | Link.Imported)


@dataclass
class _Holder:
    """An operator, and who knows the present key because they made it."""

    may: list[Right]
    makers: set[str | None]
    revoked: bool = False
    has_own_key: bool = False

    @property
    def can_approve(self) -> bool:
        return "approve" in self.may and self.has_own_key and not self.revoked


@dataclass
class OperatorInvariants:
    """All operators, payment services and open proposals, and the limit that is in force."""

    _promises: Promises
    _operators: dict[str | None, _Holder] = field(default_factory=dict)
    _machines: dict[str, datetime | None] = field(default_factory=dict)  # And when revoked.
    _open: dict[UUID, Proposal.Made] = field(default_factory=dict)
    _limits: list[int | None] = field(default_factory=list)  # All that were ever set.
    _covers_people: bool = False  # From the first limit on that says so.
    _had_approver: bool = False
    _granted: set[UUID] = field(default_factory=set)
    _sums: dict[Hashable, int] = field(default_factory=dict)  # By charge; by actor and day.

    def check(self, position: int, event: Event) -> Iterator[str]:
        """Check who caused an event, and that what is above the limit was approved."""
        if not isinstance(event, ByOperator):
            return
        if isinstance(event, Operator.KeyRehashed):
            yield from _check_holder(event)
            return
        is_approved = self._is_approved(event)
        by_approver = is_approved and not isinstance(event, Operator.Event | ApiClient.Event)
        if self._operators and (right := "approve" if by_approver else right_of(event)):
            yield from self._check_right(event, right)
        micros = self._counted(event, is_approved=is_approved)
        if not is_approved:
            yield from self._check_limit(event, micros)
        yield from self._note(position, event)

    def _note(self, position: int, event: ByOperator) -> Iterator[str]:
        match event:
            case Operator.Registered() | Operator.KeyRotated() | Operator.Revoked():
                self._note_operator(event)
            case ApiClient.Registered() if "deposits" in event.scopes:
                self._machines[f"{MACHINE}{event.client_id}"] = None
            case ApiClient.Revoked() if f"{MACHINE}{event.client_id}" in self._machines:
                self._machines[f"{MACHINE}{event.client_id}"] = event.timestamp
            case ApprovalLimit.Set():
                self._limits.append(event.above_micros)
                self._covers_people |= event.covers is not None
            case Proposal.Made():
                self._open[event.originator_id] = event
            case Proposal.Event():
                yield from self._decide(position, event)

    def are_two(self, proposer: str | None, approver: str | None) -> bool:
        """Tell whether an approval is that of another operator than the proposer."""
        holder, other = self._operators.get(approver), self._operators.get(proposer)
        if self._covers_people:
            is_void = other is not None and other.revoked
            return holder is not None and holder.has_own_key and holder is not other and not is_void
        knows = self._limits and holder is not None and proposer in holder.makers
        return is_operator(approver) and approver != proposer and not knows

    def _check_right(self, event: ByOperator, right: Right) -> Iterator[str]:
        actor = event.actor
        if actor is None and (
            may_be_of_others(event) or (event.request_id == DEMO and right != "money")
        ):
            return
        if isinstance(event, Deposit.Made) and actor in self._machines:
            revoked_at = self._machines[actor]
            if revoked_at is not None and event.timestamp > revoked_at + BELIEVED:
                yield f"{actor!r} deposits after it was revoked"
        elif not (self._may(event, right) or self._may_begin(event) or self._needs_no_right(event)):
            yield f"{actor!r} does this without the right {right}"

    def _may(self, event: ByOperator, right: Right) -> bool:
        holder = self._operators.get(event.actor)
        if holder is None or right not in holder.may:
            return False
        return not holder.revoked or isinstance(event, SETTLED_LATER)

    def _needs_no_right(self, event: ByOperator) -> bool:
        """Tell whether an event only asks, refuses a key to others, or repeats what holds."""
        match event:
            case LookupPrice.Set():
                return event.actor is None and event.originator_version == FIRST_PRICE
            case ApprovalLimit.Set():
                return bool(self._limits) and event.above_micros == self._limits[-1]
            case Proposal.Made():
                return event.kind in PEOPLE and not is_operator(event.actor)
            case Proposal.Rejected():
                made = self._open.get(event.originator_id)
                return made is not None and made.kind in PEOPLE and self._may(event, "keys")
        return False

    def _may_begin(self, event: ByOperator) -> bool:
        """Tell whether an operator's key was made in one of the ways that need no right."""
        own = self._operators.get(f"operator:{event.originator_id}")
        if isinstance(event, Operator.KeyRotated) and own is not None:
            is_own = event.actor == f"operator:{event.originator_id}" and not own.revoked
            return is_own or (not is_operator(event.actor) and "keys" in own.may)  # Locked out.
        managers = (e for e in self._operators.values() if "keys" in e.may and not e.revoked)
        return isinstance(event, Operator.Registered) and not any(managers)

    def _note_operator(
        self, event: Operator.Registered | Operator.KeyRotated | Operator.Revoked
    ) -> None:
        own, maker = f"operator:{event.originator_id}", self._operators.get(event.actor)
        makers = {event.actor, *(maker.makers if maker else ())} if event.actor != own else set()
        holder = self._operators.get(own)
        if isinstance(event, Operator.Registered):
            self._operators[own] = _Holder(event.may, makers)
        elif holder is not None and isinstance(event, Operator.Revoked):
            holder.revoked = True
        elif holder is not None:
            holder.makers, holder.has_own_key = makers, event.actor == own
            self._had_approver |= holder.can_approve

    def _counted(self, event: ByOperator, *, is_approved: bool) -> int:
        """Return the amount that counts against the limit: with that of the charge, or the day."""
        key: Hashable = None
        match event:
            case RefundByHand():
                key, micros = event.transaction_id, event.refund.amount_micros
            case Adjustment.Made() | Deposit.Made():
                by_machine = isinstance(event, Deposit.Made) and event.actor in self._machines
                micros = 0 if by_machine or is_approved else abs(event.amount_micros)
                key = event.actor, event.timestamp.date()
            case _:
                return 0
        self._sums[key] = self._sums.get(key, 0) + micros
        return self._sums[key] if micros and self._covers_people else micros

    def _check_limit(self, event: ByOperator, micros: int) -> Iterator[str]:
        """Check what no second operator has approved."""
        if not self._limits:
            return
        limit = self._limits[-1]
        if isinstance(event, ApprovalLimit.Set):
            if not _within(event.above_micros, limit):
                yield "the approval limit is raised without another operator"
        elif not _within(micros, limit):
            yield "it is above the approval limit, and no other operator has approved it"
        elif self._covers_people and limit is not None and self._takes_two(event):
            yield "it takes another operator, and none has approved it"

    def _takes_two(self, event: ByOperator) -> bool:
        """Tell whether another operator has to approve a person, a client that pays in, or a price.

        People need nobody before the first operator could approve: with a key of their own.
        """
        match event:
            case Operator.Registered():
                return self._had_approver and not TAKE_TWO.isdisjoint(event.may)
            case Operator.KeyRotated():
                holder = self._operators.get(own := f"operator:{event.originator_id}")
                may = holder.may if holder is not None and event.actor != own else []
                return self._had_approver and not TAKE_TWO.isdisjoint(may)
            case ApiClient.Registered():
                return "deposits" in event.scopes
            case ApiClient.SecretRotated():
                return f"{MACHINE}{event.client_id}" in self._machines
            case Organization.Registered():
                return event.price_micros is not None or event.monthly_link_fee_micros != 0
            case LookupPrice.Set():
                return event.actor is not None or event.originator_version != FIRST_PRICE
        return isinstance(event, Organization.PriceChanged | Organization.MonthlyLinkFeeChanged)

    def _is_approved(self, event: ByOperator) -> bool:
        """Tell whether another operator has approved just this, in this commit or before it."""
        what: tuple[Hashable, ...] = ()
        facts: tuple[object, ...] = (None, None, None, None)
        match event:
            case Deposit.Made() | Adjustment.Made():
                noun = "deposit" if isinstance(event, Deposit.Made) else "adjustment"
                what = noun, event.organization_id, event.reference
                facts = (event.amount_micros, getattr(event, "reason", None), None, None)
            case RefundByHand():
                what = "refund", event.organization_id, event.reference
                facts = (event.refund.amount_micros, event.reason, event.transaction_id, None)
            case ApprovalLimit.Set(above_micros=micros):
                what, facts = ("limit", None, None), (micros, None, None, None)
            case LookupPrice.Set(amount_micros=micros):
                what, facts = ("price", None, None), (micros, None, None, None)
            case Operator.Event() | ApiClient.Event():
                what, facts = _of_secret(event)
            case Organization.PriceChanged(price_micros=micros):
                what, facts = ("price", event.originator_id, None), (micros, None, None, None)
            case Organization.MonthlyLinkFeeChanged(monthly_link_fee_micros=micros):
                what, facts = ("fee", event.originator_id, None), (micros, None, None, None)
        return bool(what) and self._promises.keep(what, facts)

    def _decide(self, position: int, event: Proposal.Event) -> Iterator[str]:
        stream = event.originator_id
        made, is_granted = self._open.get(stream), stream in self._granted
        if made is None or (is_granted and isinstance(event, Proposal.Approved | Proposal.Granted)):
            yield f"proposal {stream} is decided before it is made, or twice"
            return
        if isinstance(event, Proposal.Approved | Proposal.Granted):
            if not self.are_two(made.actor, event.actor):
                yield f"proposal {stream} is not approved by another operator"
            if isinstance(event, Proposal.Granted) != (made.kind in WITH_SECRET):
                yield f"proposal {stream} shows its secret to another than who has asked"
        elif isinstance(event, Proposal.Used):
            is_late = event.timestamp - made.timestamp >= ALONE_AFTER
            others = (it for name, it in self._operators.items() if name != made.actor)
            is_alone = made.kind in PEOPLE and is_late and not any(it.can_approve for it in others)
            if event.actor != made.actor or not (is_granted or is_alone):
                yield f"proposal {stream} is not approved by another operator"
        if isinstance(event, Proposal.Granted):
            self._granted.add(stream)
            return
        del self._open[stream]
        if not isinstance(event, Proposal.Rejected):
            what = (made.kind, made.organization_id, made.reference or made.subject)
            facts = (made.amount_micros, made.reason, made.transaction_id, made.may)
            self._promises.make(position, what, facts, f"proposal {stream} is approved, not done")


def _of_secret(event: ByOperator) -> tuple[tuple[Hashable, ...], tuple[object, ...]]:
    """Return what a proposal says of an event that makes a secret; nothing for any other."""
    match event:
        case Operator.Registered():
            return ("operator", None, event.name), (None, None, None, event.may)
        case Operator.KeyRotated():
            return ("key", None, str(event.originator_id)), (None, None, None, None)
        case ApiClient.Registered():
            return ("client", None, None), (None, None, None, event.scopes)
        case ApiClient.SecretRotated():
            return ("secret", None, event.client_id), (None, None, None, None)
    return (), ()


def _within(amount_micros: int | None, limit_micros: int | None) -> bool:
    """Tell whether an amount, or another limit, is at most a limit; None: there is no limit."""
    if limit_micros is None:
        return True
    return amount_micros is not None and amount_micros <= limit_micros


def _check_holder(event: Operator.KeyRehashed) -> Iterator[str]:
    """Check that whoever used a key is its operator; that needs no right."""
    if event.actor != f"operator:{event.originator_id}":
        yield f"{event.actor!r} has used the key of another operator"
