"""The worker's driver: it brings what is due as far as it can go now.

Any worker may do so at any time: a message may come twice, late or never.
"""

import logging
from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from domain.accounts.wallet import Charge
from domain.cause import Cause
from domain.errors import (
    LATE,
    REJECTED,
    UNREACHABLE,
    BillingNotConfigured,
    ConfigError,
    Conflict,
    IncompleteNetworkAnswer,
    InsufficientBalance,
    ProvisioningError,
    Refused,
    SpendingLimit,
)
from domain.links.driver import Driver, S, W
from domain.links.failing import Failing
from domain.links.link import Link
from domain.links.lost_order import LostOrder
from domain.links.network import EsimNetwork, NoEndpoint, OrderNetwork, StockNetwork
from domain.links.plan_change import PlanChange
from domain.links.saga import Step
from domain.log.log import Log
from domain.provider_errors import OutcomeUnknown, ProviderError, Rejected, Unavailable
from workers.routes import Message, saga_message

CALL = timedelta(seconds=5)  # For one call of the network; two fit into a deadline.
STEPS_MAX = 100  # A link has about ten. Beyond that, other workers keep moving it and do the work.
FAILURES = (ProvisioningError, IncompleteNetworkAnswer)
CANNOT_PAY = (SpendingLimit, InsufficientBalance, BillingNotConfigured, ConfigError)

# An intent: streams with it, what it costs, and the call within it, which gets its seconds.
Intent = tuple[Sequence[Any], Sequence[Charge], Callable[[float], S]]

logger = logging.getLogger(__name__)


def stock(network: EsimNetwork) -> StockNetwork:
    """Return a network with a stock; raises Unavailable for one that is not configured."""
    if network.shape != "stock":
        raise Unavailable
    return network


def by_order(network: EsimNetwork) -> OrderNetwork:
    """Return a network that sells by order; raises Unavailable for one that is not configured."""
    if network.shape != "order":
        raise Unavailable
    return network


@dataclass(frozen=True)
class Worked(Driver[W, S]):
    """A call that a worker makes. At the deadline of its request it fails, with the refunds."""

    failing: Failing

    too_late = OutcomeUnknown  # It is looked up and made again.

    @abstractmethod
    def prepare(self, work: W) -> Iterator[Intent[S]]:
        """State the intent, the first one with its price; the next if others take what it takes.

        Raises one of FAILURES if it cannot be done, and ProviderError to be tried again.
        """

    @abstractmethod
    def clean_up(self, work: W) -> W | None:
        """Undo what the failed call may have done; returns and raises as `step`."""

    def intent(self, work: W) -> Any:
        return work.intent

    def mark(self, work: W) -> int:
        return work.version

    def do(self, step: Step, work: W) -> W | None:
        match step:
            case Step.START:
                return self._start(work)
            case Step.GIVE_UP:  # By the deadline, or because it was tried too often.
                why = given_up(work.requested.deadline, self.clock())
                return self.fail(work, why, outcome_known=False)
            case Step.CLEAN_UP:
                return self.clean_up(work)
        return None

    def _start(self, work: W) -> W:
        version = work.version
        try:
            work, call = self._claim(work)
        except (*FAILURES, *CANNOT_PAY) as refusal:  # Nothing was taken.
            newest = self.log.get(type(work), work.id)
            is_moved = newest.version != version
            return newest if is_moved else self.fail(newest, refusal, outcome_known=True)
        return self.make_call(work, call)[0]

    def _claim(self, work: Any) -> tuple[Any, Callable[[float], S]]:
        """Append the intent; only who wins this race may call."""
        for roots, charges, call in self.prepare(work):
            with suppress(Conflict):
                if isinstance(work, PlanChange):  # Two workers may write the same bytes.
                    self.log.claim(*roots)
                else:
                    cause = Cause(self.intent(roots[0]).timestamp, work.requested.request_id)
                    self.committer.commit_entries(work.organization_id, charges, cause, *roots)
                return roots[0], call
        raise Conflict(work.id)

    def take_over(self, work: W, timeout_s: float = CALL.total_seconds()) -> W | None:
        return super().take_over(work, min(timeout_s, self.left_s(work.requested.deadline)))

    def commit(self, work: W, seen: S | None, cause: Cause) -> None:
        try:
            super().commit(work, seen, cause)
        except FAILURES as refusal:  # What the network shows cannot be sold.
            self.failing.fail(work, refusal, outcome_known=False)

    def refused(self, work: W, error: ProviderError) -> W:
        why = refusal_of(error, work.requested.deadline, self.clock())
        return self.fail(work, why, outcome_known=True)

    def fail(self, work: W, refusal: Refused, *, outcome_known: bool) -> W:
        """Fail it, with the refunds, unless others have moved it; return the newest state."""
        version = work.version

        def fail(newest: W) -> W:
            if newest.version == version:
                self.failing.fail(newest, refusal, outcome_known=outcome_known)
            return newest

        # Most conflicts of a change concern only its link, because reads append what they see.
        return self.log.change(work, fail)

    def cause(self, work: W) -> Cause:
        return Cause(self.clock(), work.requested.request_id)

    def until(self, work: W, now: datetime) -> datetime:
        """Return when the intent of a call that begins now runs out; raises Unavailable."""
        until = min(now + CALL, work.requested.deadline)
        if until <= now:
            raise Unavailable
        return until

    def left_s(self, until: datetime) -> float:
        return max(0.0, min(until - self.clock(), CALL).total_seconds())


@dataclass(frozen=True)
class Driving:
    """Works on one kind of stream, by the first of its rows that is for it now, else the last."""

    log: Log
    in_turn: Callable[[str, UUID, Message, Callable[[], object]], object]
    of: type[Link | PlanChange | LostOrder]
    rows: Sequence[Any]

    def work(self, stream_id: UUID) -> None:
        """Bring one as far as it can go now, once it has a free thread."""
        found = self.log.find(self.of, stream_id)
        if found is None:
            logger.error("%s %s does not exist", self.of.TOPIC.replace("_", " "), stream_id)
            return
        message = saga_message(self.of.TOPIC, stream_id)
        self.in_turn(found.network, found.organization_id, message, lambda: self.drive(found))

    def drive(self, work: Any) -> None:
        """Do step after step; after a lost race go on with the newest state."""
        for _ in range(STEPS_MAX):
            row = next((each for each in self.rows[:-1] if each.is_for(work)), self.rows[-1])
            try:
                newest = row.step(work)
            except ProviderError:  # It is tried again at the next beat.
                return
            except Conflict:
                newest = self.log.get(self.of, work.id)
            if newest is None:
                return
            work = newest


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
