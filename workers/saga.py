"""What is alike in the work of links, plan changes and lost orders at a network.

Each has a table from state to next step, which any worker may start at any time. A call follows an
intent in the log, and its outcome is looked up before it is repeated.
"""

import logging
from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, Generic, TypeVar
from uuid import UUID

from domain.cause import Cause, Clock
from domain.errors import Conflict, Refused
from domain.links.failing import Failing, given_up, refusal_of
from domain.links.link import Link
from domain.links.lost_order import LostOrder
from domain.links.network import EsimNetwork, OrderNetwork, StockNetwork
from domain.links.networks import Networks
from domain.links.plan_change import PlanChange
from domain.log.log import Log
from domain.provider_errors import OutcomeUnknown, ProviderError, Unavailable
from workers.routes import Message

CALL = timedelta(seconds=5)  # For one call of the network; two fit into a deadline.
STEPS_MAX = 100  # A link has about ten. Beyond that, other workers keep moving it and do the work.

S = TypeVar("S", Link, PlanChange, LostOrder)
C = TypeVar("C", Link, PlanChange)
T = TypeVar("T")

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
class Saga(ABC, Generic[S]):
    """Works at one network; `clock` raises ServiceUnavailable while it is wrong."""

    log: Log
    network: EsimNetwork
    clock: Clock

    def work(self, it: S) -> None:
        """Bring it as far as it can go now; after a lost race go on with the newest state."""
        for _ in range(STEPS_MAX):
            with suppress(Conflict):
                if not self._do(self._next(it), it):
                    return
            it = self.log.get(type(it), it.id)

    @abstractmethod
    def _next(self, it: S) -> StrEnum:
        """Return the next step by the table."""

    def _do(self, step: StrEnum, it: S) -> bool:
        """Do one step, by the method of its name; True when another one may follow now."""
        return step not in {"nothing", "wait"} and bool(getattr(self, f"_{step}")(it))

    def _left_s(self, until: datetime) -> float:
        """Return how long a call may take."""
        return max(0.0, min(until - self.clock(), CALL).total_seconds())


@dataclass(frozen=True)
class Calling(Saga[C]):
    """A saga that states intents, and fails at its deadline."""

    failing: Failing

    def _cause(self, it: C) -> Cause:
        return Cause(self.clock(), it.requested.request_id)

    def _until(self, it: C, now: datetime) -> datetime:
        """Return when the intent of a call that begins now runs out."""
        return min(now + CALL, it.requested.deadline)

    def _called(self, it: C, call: Callable[[float], T]) -> T | None:
        """Call as the intent says; None where there is no answer, and the next step follows.

        Only the worker that has won the race for the intent comes here. An unknown outcome is
        looked up at once, because most lost replies were of calls that succeeded.
        """
        assert it.intent is not None
        left_s = (it.intent.until - self.clock()).total_seconds()
        if left_s <= 0:  # The append took longer than the intent lasts.
            return None
        try:
            return call(left_s)
        except OutcomeUnknown:
            return None
        except ProviderError as error:
            why = refusal_of(error, it.requested.deadline, self.clock())
        self._end(it, why, outcome_known=True)
        return None

    def _give_up(self, it: C) -> bool:
        """Fail, by the deadline or because it was tried too often."""
        why = given_up(it.requested.deadline, self.clock())
        return self._end(it, why, outcome_known=False)

    @abstractmethod
    def _end(self, it: C, refusal: Refused, *, outcome_known: bool) -> bool:
        """Fail it, with the refunds."""


@dataclass(frozen=True)
class SagaWork:
    """Works on one kind of saga at all networks; any message may come twice, late or never."""

    log: Log
    networks: Networks
    in_turn: Callable[[str, UUID, Message, Callable[[], object]], object]
    message: Callable[[UUID], Message]
    of: type[Link | PlanChange | LostOrder]
    saga: Callable[[EsimNetwork], Saga[Any]]

    def work(self, stream_id: UUID) -> None:
        """Bring one as far as it can go now, once it has a free thread."""
        found = self.log.find(self.of, stream_id)
        if found is None:
            logger.error("%s %s does not exist", self.of.TOPIC.replace("_", " "), stream_id)
            return
        saga = self.saga(self.networks.of(found.network))
        message = self.message(stream_id)
        self.in_turn(found.network, found.organization_id, message, lambda: saga.work(found))
