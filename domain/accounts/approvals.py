"""What takes two operators once there is an approval limit: money, people, prices, the limit.

What was asked waits as a `Proposal`. Most of it is made in the commit of its approval. A new
operator, key, client or secret is made by who has asked for it, because nobody else may see it.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import date, timedelta
from itertools import count
from typing import Any, Literal, Self
from uuid import UUID

from domain.accounts.operators import Operators
from domain.accounts.wallet import Metadata
from domain.cause import OPERATOR, Cause, is_operator
from domain.errors import NotPossible
from domain.ids import derive_id
from domain.log.aggregate import ByOperator, Created, Root, fact, itself, sets
from domain.log.log import Log, retried

Kind = Literal[
    "deposit",
    "adjustment",
    "reversal",
    "payout",
    "refund",
    "limit",
    "price",
    "fee",
    "operator",
    "key",
    "client",
    "secret",
]
PEOPLE = ("operator", "key")  # Without these nobody could ever approve anything.
WITH_SECRET = (*PEOPLE, "client", "secret")
ALONE_AFTER = timedelta(hours=24)  # So long a lost key, or a new operator, waits for nobody.


class ApprovalLimit(Root):
    """Above what amount a second operator has to agree; the log has one such stream."""

    TOPIC = "approval_limit"

    class Opened(Created):
        """Saved together with the first limit."""

        TOPIC = "approval_limit.opened"

    class Set(Root.Event, ByOperator):
        """It holds from the next event on. None: there is no limit any more.

        `covers` is left out by releases for which people and prices took one operator, and each
        amount was judged alone.
        """

        TOPIC = "approval_limit.set"
        SETS = sets("above_micros", "covers")

        above_micros: int | None
        covers: Literal["people"] | None = field(default=None, kw_only=True)

    above_micros: int | None = None
    covers: str | None = None

    def set(self, above_micros: int | None, cause: Cause) -> None:
        """Set the limit; one who raises or ends it needs an approved proposal."""
        self.record(self.Set, cause, above_micros=above_micros, covers="people")


class Proposal(Root):
    """Something that one operator wants, and that happens when another one approves it."""

    TOPIC = "proposal"

    class Made(Created, ByOperator):
        """Nothing has happened yet.

        Of a `refund`, `transaction_id` is the charge, `charged_for` the stream that it is for, and
        `metadata` the charge's. A `limit` has no organization; without an amount it ends. Nor has
        the `price` of all; without an amount an organization's own price ends. `subject` is the
        name of an `operator`, the id of one who gets a `key`, the id of the client of a `secret`;
        `may` are the rights, or the scopes of a `client`. `deposit` is the reference of what a
        `reversal` takes back.
        """

        TOPIC = "proposal.made"
        SETS = sets(
            *("organization_id", "amount_micros", "reference", "reason", "value_date"),
            made=itself,
            proposed_by=fact("actor"),
        )

        kind: Kind
        organization_id: UUID | None = field(default=None, kw_only=True)
        amount_micros: int | None = field(default=None, kw_only=True)
        reference: str | None = field(default=None, kw_only=True)
        reason: str | None = field(default=None, kw_only=True)
        transaction_id: UUID | None = field(default=None, kw_only=True)
        charged_for: UUID | None = field(default=None, kw_only=True)
        metadata: Metadata | None = field(default=None, kw_only=True)
        subject: str | None = field(default=None, kw_only=True)
        may: list[str] | None = field(default=None, kw_only=True)
        deposit: str | None = field(default=None, kw_only=True)
        value_date: date | None = field(default=None, kw_only=True)

    class Approved(Root.Event, ByOperator):
        """Another operator agreed; what was proposed is made in the same commit."""

        TOPIC = "proposal.approved"
        SETS = sets(state="made")

    class Granted(Root.Event, ByOperator):
        """Another operator agreed; who has asked makes it, and gets its secret."""

        TOPIC = "proposal.granted"
        SETS = sets(state="granted")

    class Used(Root.Event, ByOperator):
        """What was granted is made in the same commit."""

        TOPIC = "proposal.used"
        SETS = sets(state="made")

    class Rejected(Root.Event, ByOperator):
        TOPIC = "proposal.rejected"
        SETS = sets(state="rejected")

    made: Made
    proposed_by: str | None
    # As a correction has them.
    organization_id: UUID | None
    amount_micros: int | None
    reference: str | None
    reason: str | None
    value_date: date | None
    state: Literal["proposed", "granted", "made", "rejected"] = "proposed"

    @classmethod
    def of(cls, cause: Cause, kind: Kind, *names: object, **facts: Any) -> Self:
        """Propose what has these `names`, which no other proposal has."""
        return cls.begin(cls.Made, cause, derive_id("proposal", *names), kind=kind, **facts)

    def approve(self, cause: Cause, operators: Operators) -> None:
        self._refuse_decided("proposed")
        operators.require_two(self.proposed_by, cause.actor)
        with_secret = self.made.kind in WITH_SECRET
        self.record(self.Granted if with_secret else self.Approved, cause)

    def reject(self, cause: Cause) -> None:
        self._refuse_decided("proposed", "granted")
        self.record(self.Rejected, cause)

    def _refuse_decided(self, *open_states: str) -> None:
        if self.state not in open_states:
            raise NotPossible(f"this {self.made.kind} was {self.state} already")


class WaitsForApproval(NotPossible):
    """Raised when something was proposed in place of being done; `proposal` is in the log."""

    def __init__(self, proposal: Proposal) -> None:
        super().__init__("another operator has to approve this first")
        self.proposal = proposal


@dataclass(frozen=True)
class Approvals:
    """The approval limit, read from the log itself."""

    log: Log

    @property
    def operators(self) -> Operators:
        return Operators(self.log)

    def above_micros(self) -> int | None:
        """Return above what amount a second operator has to agree; None: there is no limit."""
        limit = self.log.find(ApprovalLimit, ApprovalLimit.id_of())
        return None if limit is None else limit.above_micros

    def needed(self, amount_micros: int, cause: Cause, before: Callable[[], int]) -> bool:
        """Tell whether an amount with what is `before` it needs an operator's approval."""
        above_micros = self.above_micros()
        if above_micros is None or abs(amount_micros) + before() <= above_micros:
            return False
        require_operator(cause)
        return True

    @retried
    def set_limit(self, above_micros: int | None, cause: Cause) -> Proposal | None:
        """Set the first limit or a lower one; propose a higher one, or its end (None)."""
        limit_id = ApprovalLimit.id_of()
        limit = self.log.find(ApprovalLimit, limit_id)
        limit = limit or ApprovalLimit.begin(ApprovalLimit.Opened, cause, limit_id)
        now = limit.above_micros
        if above_micros == now:
            return None
        if now is None or (above_micros is not None and above_micros < now):
            limit.set(above_micros, cause)
            self.log.append(limit)
            return None
        return self.propose("limit", cause, amount_micros=above_micros)

    def renew_limit(self, cause: Cause) -> None:
        """State a limit of an earlier release again, so that it covers people and prices too."""
        limit = self.log.find(ApprovalLimit, ApprovalLimit.id_of())
        if limit is not None and limit.above_micros is not None and limit.covers is None:
            limit.set(limit.above_micros, cause)
            self.log.append(limit)

    def propose(self, kind: Kind, cause: Cause, **facts: Any) -> Proposal:
        """Propose what has no name of its own; while it is open, it is not proposed again."""
        if kind not in PEOPLE:
            require_operator(cause)
        for number in count(1):
            made = Proposal.of(cause, kind, kind, cause.actor, *facts.values(), number, **facts)
            known = self.log.find(Proposal, made.id)
            if known is None:
                self.log.append(made)
            if known is None or known.state in {"proposed", "granted"}:
                return known or self.log.get(Proposal, made.id)
        raise AssertionError

    def permit(self, kind: Kind, cause: Cause, **facts: Any) -> list[Proposal]:
        """Return what is saved with something that two have to want; raises WaitsForApproval.

        People need no approval before the first operator could give one. Later they wait until
        nobody else could for ALONE_AFTER. Whoever is locked out has lost the key to approve with.
        """
        operators, is_person = self.operators, kind in PEOPLE
        if self.above_micros() is None or (is_person and not operators.had_approver()):
            return []
        proposal = self.propose(kind, cause, **facts)
        lost = None if is_operator(cause.actor) else f"{OPERATOR}{facts.get('subject')}"
        since = operators.idle_since((cause.actor, lost), proposal.created_on)
        is_alone = is_person and since is not None and cause.at - since >= ALONE_AFTER
        if proposal.state != "granted" and not is_alone:
            raise WaitsForApproval(proposal)
        proposal.record(Proposal.Used, cause)
        return [proposal]


def require_operator(cause: Cause) -> None:
    """Raise NotPossible for what users of a machine cannot do: nobody tells them well apart."""
    if not is_operator(cause.actor):
        raise NotPossible("what takes a second operator needs operators: create them")
