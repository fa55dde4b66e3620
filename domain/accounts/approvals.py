"""What takes two operators: amounts above the approval limit, and a higher limit.

A correction above the limit waits on its own stream (`Adjustment`). A deposit by command, a refund
by hand and a higher limit wait as a `Proposal`, and are made in the commit of its approval.
"""

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field
from typing import Literal, Self
from uuid import UUID

from domain.accounts.operators import require_other
from domain.accounts.refund_by_hand import HandRefund
from domain.accounts.wallet import Metadata, deposit_id
from domain.cause import Cause, is_operator
from domain.errors import NotPossible
from domain.ids import derive_id
from domain.log.aggregate import ByOperator, Created, Root, fact, itself, sets
from domain.log.log import Log, retry_on_conflict


class ApprovalLimit(Root):
    """Above what amount a second operator has to agree; the log has one such stream."""

    TOPIC = "approval_limit"

    class Opened(Created):
        """Saved together with the first limit."""

        TOPIC = "approval_limit.opened"
        SETS = sets(above_micros=None)

    class Set(Root.Event, ByOperator):
        """It holds from the next event on. None: there is no limit any more."""

        TOPIC = "approval_limit.set"
        SETS = sets("above_micros")

        above_micros: int | None

    above_micros: int | None

    @classmethod
    def open(cls, cause: Cause) -> Self:
        return cls.begin(cls.Opened, cause, LIMIT_ID)

    def set(self, above_micros: int | None, cause: Cause) -> None:
        """Set the limit; one who raises or ends it needs an approved proposal."""
        self.record(self.Set, cause, above_micros=above_micros)


class Proposal(Root):
    """Something that one operator wants, and that happens when another one approves it."""

    TOPIC = "proposal"

    class Made(Created, ByOperator):
        """Nothing has happened yet.

        Of a `refund`, `transaction_id` is the charge, `charged_for` the stream that it is for, and
        `metadata` the charge's. A `limit` has no organization; without an amount it ends.
        """

        TOPIC = "proposal.made"
        SETS = sets(
            *("organization_id", "amount_micros", "reference", "reason"),
            made=itself,
            state="proposed",
            proposed_by=fact("actor"),
        )

        kind: Literal["deposit", "refund", "limit"]
        organization_id: UUID | None = field(default=None, kw_only=True)
        amount_micros: int | None = field(default=None, kw_only=True)
        reference: str | None = field(default=None, kw_only=True)
        reason: str | None = field(default=None, kw_only=True)
        transaction_id: UUID | None = field(default=None, kw_only=True)
        charged_for: UUID | None = field(default=None, kw_only=True)
        metadata: Metadata | None = field(default=None, kw_only=True)

    class Approved(Root.Event, ByOperator):
        """Another operator agreed; what was proposed is made in the same commit."""

        TOPIC = "proposal.approved"
        SETS = sets(state="made")

    class Rejected(Root.Event, ByOperator):
        TOPIC = "proposal.rejected"
        SETS = sets(state="rejected")

    made: Made
    state: Literal["proposed", "made", "rejected"]
    proposed_by: str | None
    # As a correction has them.
    organization_id: UUID | None
    amount_micros: int | None
    reference: str | None
    reason: str | None

    @classmethod
    def of_deposit(
        cls, organization_id: UUID, amount_micros: int, reference: str, cause: Cause
    ) -> Self:
        stream_id = derive_id("proposal", deposit_id(organization_id, reference))
        facts = {"amount_micros": amount_micros, "reference": reference}
        return cls.begin(
            cls.Made, cause, stream_id, kind="deposit", organization_id=organization_id, **facts
        )

    @classmethod
    def of_refund(
        cls,
        organization_id: UUID,
        charged_for: UUID,
        asked: HandRefund,
        amount_micros: int,
        cause: Cause,
    ) -> Self:
        return cls.begin(
            cls.Made,
            cause,
            derive_id("proposal", asked.transaction_id, asked.reference),
            kind="refund",
            organization_id=organization_id,
            amount_micros=amount_micros,
            reference=asked.reference,
            reason=asked.reason,
            transaction_id=asked.transaction_id,
            charged_for=charged_for,
            metadata=asked.metadata,
        )

    def approve(self, cause: Cause, makers: Collection[str]) -> None:
        """Agree to what somebody else wants; `makers` are those of the approver's key."""
        self._refuse_decided()
        require_other(self.made.actor, cause.actor, makers)
        self.record(self.Approved, cause)

    def reject(self, cause: Cause) -> None:
        """Decide that it never happens."""
        self._refuse_decided()
        self.record(self.Rejected, cause)

    def _refuse_decided(self) -> None:
        if self.state != "proposed":
            message = f"this {self.made.kind} was {self.state} already"
            raise NotPossible(message)


class WaitsForApproval(NotPossible):
    """Raised when something was proposed in place of being done; `proposal` is in the log."""

    def __init__(self, proposal: Proposal) -> None:
        super().__init__("this is above the approval limit: another operator has to approve it")
        self.proposal = proposal


@dataclass(frozen=True)
class Approvals:
    """The approval limit, read from the log itself."""

    log: Log
    new_id: Callable[[], UUID]

    def above_micros(self) -> int | None:
        """Return above what amount a second operator has to agree; None: there is no limit."""
        limit = self.log.find(ApprovalLimit, LIMIT_ID)
        return None if limit is None else limit.above_micros

    def needed(self, amount_micros: int, cause: Cause) -> bool:
        """Tell whether an amount needs approval; raises NotPossible for one without operators."""
        above_micros = self.above_micros()
        if above_micros is None or abs(amount_micros) <= above_micros:
            return False
        require_operator(cause)
        return True

    def set_limit(
        self, above_micros: int | None, cause: Cause, waiting: Iterable[Proposal] = ()
    ) -> Proposal | None:
        """Set the first limit or a lower one; propose a higher one, or its end (None).

        What is among the `waiting` is not proposed again.
        """

        def attempt() -> Proposal | None:
            limit = self.log.find(ApprovalLimit, LIMIT_ID) or ApprovalLimit.open(cause)
            now = limit.above_micros
            if above_micros == now:
                return None
            if now is None or (above_micros is not None and above_micros < now):
                limit.set(above_micros, cause)
                self.log.append(limit)
                return None
            require_operator(cause)
            for each in waiting:
                if each.amount_micros == above_micros:
                    return each
            facts = {"kind": "limit", "amount_micros": above_micros}
            proposal = Proposal.begin(Proposal.Made, cause, self.new_id(), **facts)
            self.log.append(proposal)
            return proposal

        return retry_on_conflict(attempt)


def require_operator(cause: Cause) -> None:
    """Raise NotPossible for what users of a machine cannot do: nobody tells them well apart."""
    if not is_operator(cause.actor):
        message = "what is above the approval limit needs operators: create them"
        raise NotPossible(message)


LIMIT_ID = derive_id("approval_limit")
