"""Checks who did it: every actor against the rights, every amount against the approval limit.

An event is judged by what was in force at its position, and nobody needs a right before the first
operator is registered. From then on every release has kept the actor of each command that needs a
right, so logs of any age are judged alike. Only who made an approver's key counts from the first
limit on, because earlier releases did not ask. Commands take turns, so that what one has read of
rights and limit holds where its events are.
"""

from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from types import MappingProxyType
from uuid import UUID

from domain.accounts.approvals import ApprovalLimit, Proposal
from domain.accounts.operator_acts import OperatorAct
from domain.accounts.operators import Operator, Right
from domain.accounts.organization import ApiClient
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
    if isinstance(event, Proposal.Made) and event.kind == "limit":
        return "keys"
    return "approve" if what in {"approved", "rejected"} else RIGHTS[noun]


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


@dataclass
class OperatorInvariants:
    """All operators, payment services and open proposals, and the limit that is in force."""

    _promises: Promises
    _operators: dict[str | None, _Holder] = field(default_factory=dict)
    _machines: dict[str, datetime | None] = field(default_factory=dict)  # And when revoked.
    _open: dict[UUID, Proposal.Made] = field(default_factory=dict)
    _limits: list[int | None] = field(default_factory=list)  # All that were ever set.

    def check(self, position: int, event: Event) -> Iterator[str]:
        """Check who caused an event, and that what is above the limit was approved."""
        if not isinstance(event, ByOperator):
            return
        if isinstance(event, Operator.KeyRehashed):
            yield from _check_holder(event)
            return
        is_approved = self._is_approved(event)
        if self._operators and (right := "approve" if is_approved else right_of(event)):
            yield from self._check_right(event, right)
        if not is_approved:
            yield from self._check_limit(event)
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
            case Proposal.Made():
                self._open[event.originator_id] = event
            case Proposal.Approved() | Proposal.Rejected():
                yield from self._decide(position, event)

    def are_two(self, proposer: str | None, approver: str | None) -> bool:
        """Tell whether an approval is that of another operator than the proposer."""
        holder = self._operators.get(approver)
        knows = self._limits and holder is not None and proposer in holder.makers
        return is_operator(approver) and approver != proposer and not knows

    def _check_right(self, event: ByOperator, right: Right) -> Iterator[str]:
        actor = event.actor
        is_setting = isinstance(event, LookupPrice.Set) and event.originator_version == FIRST_PRICE
        if actor is None and (
            is_setting or may_be_of_others(event) or (event.request_id == DEMO and right != "money")
        ):
            return
        if isinstance(event, Deposit.Made) and actor in self._machines:
            revoked_at = self._machines[actor]
            if revoked_at is not None and event.timestamp > revoked_at + BELIEVED:
                yield f"{actor!r} deposits after it was revoked"
        elif not (self._may(event, right) or self._may_begin(event)):
            yield f"{actor!r} does this without the right {right}"

    def _may(self, event: ByOperator, right: Right) -> bool:
        holder = self._operators.get(event.actor)
        if holder is None or right not in holder.may:
            return False
        return not holder.revoked or isinstance(event, SETTLED_LATER)

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
            holder.makers = makers

    def _check_limit(self, event: ByOperator) -> Iterator[str]:
        """Check what no second operator has approved."""
        if isinstance(event, ApprovalLimit.Set):
            if self._limits and not _within(event.above_micros, self._limits[-1]):
                yield "the approval limit is raised without another operator"
            return
        amount_micros = 0
        if isinstance(event, RefundByHand):
            amount_micros = event.refund.amount_micros
        elif isinstance(event, Adjustment.Made | Deposit.Made):
            by_machine = isinstance(event, Deposit.Made) and event.actor in self._machines
            amount_micros = 0 if by_machine else abs(event.amount_micros)
        if self._limits and not _within(amount_micros, self._limits[-1]):
            yield "it is above the approval limit, and no other operator has approved it"

    def _is_approved(self, event: ByOperator) -> bool:
        """Tell whether the commit of an event has approved it."""
        promised: tuple[Hashable, object] | None = None
        match event:
            case Deposit.Made():
                key = ("deposit", event.organization_id, event.reference)
                promised = key, (event.amount_micros, None, None)
            case RefundByHand():
                key = ("refund", event.organization_id, event.reference)
                facts = (event.refund.amount_micros, event.reason, event.transaction_id)
                promised = key, facts
            case ApprovalLimit.Set():
                promised = ("limit", None, None), (event.above_micros, None, None)
        return promised is not None and self._promises.keep(*promised)

    def _decide(self, position: int, event: Proposal.Approved | Proposal.Rejected) -> Iterator[str]:
        stream = event.originator_id
        made = self._open.pop(stream, None)
        if made is None:
            yield f"proposal {stream} is decided before it is made, or twice"
        elif isinstance(event, Proposal.Approved):
            if not self.are_two(made.actor, event.actor):
                yield f"proposal {stream} is not approved by another operator"
            key = (made.kind, made.organization_id, made.reference)
            facts = (made.amount_micros, made.reason, made.transaction_id)
            self._promises.make(position, key, facts, f"proposal {stream} is approved, not done")


def _within(amount_micros: int | None, limit_micros: int | None) -> bool:
    """Tell whether an amount, or another limit, is at most a limit; None: there is no limit."""
    if limit_micros is None:
        return True
    return amount_micros is not None and amount_micros <= limit_micros


def _check_holder(event: Operator.KeyRehashed) -> Iterator[str]:
    """Check that whoever used a key is its operator; that needs no right."""
    if event.actor != f"operator:{event.originator_id}":
        yield f"{event.actor!r} has used the key of another operator"
