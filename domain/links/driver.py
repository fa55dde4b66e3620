"""The driver: how a call is made within its intent, and its outcome saved, whoever does it.

A request drives its own call in its thread, a worker whatever is due. What a dead process has left
open is taken over by a worker, or by the next request.
"""

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import partial
from typing import Any, ClassVar, Generic, TypeVar

from domain.accounts.committer import Committer
from domain.accounts.wallet import Charge, Refund
from domain.cause import Cause, Clock
from domain.errors import LATE, REJECTED, UNREACHABLE, LinkBusy, Refused
from domain.links.link import Link
from domain.links.network import EsimNetwork
from domain.links.networks import Networks
from domain.links.plan_change import PlanChange
from domain.links.saga import Repeat, Step, after_nothing, next_step
from domain.links.waiting import Limiters, wait_for
from domain.log.aggregate import Root
from domain.log.log import Log
from domain.provider_errors import OutcomeUnknown, ProviderError, Rejected, Unavailable

CALL_S = 5.0  # For all calls of one step, and for waiting until a link is free.
# For a whole request: it waits, looks, calls and looks again, unless others keep changing the link.
WITHIN_S = 4 * CALL_S

W = TypeVar("W", bound=Link | PlanChange)
S = TypeVar("S")  # What a call has done, as far as its outcome needs to know.
# What is saved at once: streams with their new events, and the money that goes with them.
Commit = tuple[Sequence[Root], Sequence[Charge | Refund]]


@dataclass(frozen=True)
class Driver(ABC, Generic[W, S]):
    """One kind of call at a network; another kind is another subclass.

    Unless it says otherwise nobody repeats it, and it leaves nothing behind.
    """

    log: Log
    committer: Committer
    networks: Networks
    clock: Clock

    too_late: ClassVar[type[ProviderError]] = Unavailable  # For an append as long as the intent.

    @abstractmethod
    def intent(self, work: W) -> Any:
        """Return the open intent of this kind, None if there is none."""

    def mark(self, work: W) -> Any:
        """Return what is the same until others go on with it; no version, because reads append."""
        return self.intent(work)

    def is_for(self, work: W) -> bool:
        """Tell whether this call is the next one, for a worker; the last row takes what is left."""
        return self.intent(work) is not None

    @abstractmethod
    def look_up(self, work: W, timeout_s: float) -> S | None:
        """Return what the network shows of it. Raises ProviderError if it does not tell."""

    @abstractmethod
    def settle(self, work: W, seen: S | None, cause: Cause) -> Commit:
        """Record what came of the intent; without anything seen, that nothing was done.

        Raises Conflict for another stream that shows that others have settled it.
        """

    def repeat(self, _network: EsimNetwork) -> Repeat:
        """Return when the call may be made again whose outcome the network does not show."""
        return "never"

    def is_done(self, _work: W, seen: S | None) -> bool:
        """Tell whether the network shows what was intended."""
        return seen is not None

    def undo(self, newest: W, seen: S) -> None:
        """Undo a call that was done after all had ended, so that nobody cleans up any more."""

    def step(self, work: W) -> W | None:
        """Do what is due; return the newest state, None when nothing more can be done now.

        Raises ProviderError if the network does not tell, Conflict when others were first.
        """
        step = next_step(work, self.clock(), self.networks.of(work.network).shape)
        return self.take_over(work) if step is Step.LOOK_UP else self.do(step, work)

    def do(self, step: Step, work: W) -> W | None:
        """Do any other step; without a deadline there is only one."""
        return self.save(work, None) if step is Step.GIVE_UP else None

    def make_call(self, work: W, call: Callable[[float], S]) -> tuple[W, ProviderError | None]:
        """Call within the intent that was appended; return the newest state, and why it failed.

        After OutcomeUnknown the intent is open.
        """
        left_s = (self.intent(work).until - self.clock()).total_seconds()
        try:
            if left_s <= 0:
                raise self.too_late
            done = call(left_s)
        except OutcomeUnknown as error:
            return work, error
        except ProviderError as error:
            return self.refused(work, error), error
        return self.save(work, done), None

    def refused(self, work: W, _error: ProviderError) -> W:
        """Record that nothing was done."""
        return self.save(work, None)

    def take_over(self, work: W, timeout_s: float = CALL_S) -> W | None:
        """Settle an open intent by what the network shows, or do what follows if it shows nothing.

        Returns and raises as `step`.
        """
        sent_at = self.clock()  # The answer may lack changes made after this moment.
        seen = self.look_up(work, timeout_s)
        if self.is_done(work, seen):
            return self.save(work, seen)
        network, until = self.networks.of(work.network), self.intent(work).until
        repeat = self.repeat(network)
        return self.do(after_nothing(work, until, sent_at, network.settles_after, repeat), work)

    def save(self, work: W, seen: S | None) -> W:
        """Save what came of the intent, unless others have; return the newest state."""
        intent, mark = self.intent(work), self.mark(work)

        def save(newest: W) -> W:
            if self.mark(newest) == mark:
                actor = getattr(intent, "actor", None)
                self.commit(newest, seen, Cause(self.clock(), intent.request_id, actor))
            elif seen is not None:
                self.undo(newest, seen)
            return newest

        return self.log.change(work, save)

    def commit(self, work: W, seen: S | None, cause: Cause) -> None:
        """Commit an outcome, with its money; raises Conflict."""
        roots, entries = self.settle(work, seen, cause)
        self.committer.commit_entries(work.organization_id, entries, cause, *roots)


@dataclass(frozen=True)
class Requested(Driver[Link, S]):
    """A call that a request makes: not repeated, given up once it can have no more effect."""

    waiting: Limiters

    opens: ClassVar[type[Link.Event]]  # Its intent.

    def intent(self, work: Link) -> Any:
        return work.open_call if work.calling is self.opens else None

    @abstractmethod
    def call(self, work: Link, timeout_s: float) -> S:
        """Carry out the intent; only the process that has written it comes here."""

    @abstractmethod
    def prepare(self, link: Link, wanted: Any, until_s: float, cause: Cause) -> tuple[Link, bool]:
        """Refuse what cannot be done; return the newest state, and whether it is as wanted.

        If it is not, an intent is recorded, unless no time is left before `until_s`. What the
        network is asked here takes `left_s(until_s)`; no ProviderError leaves this method.
        """

    @abstractmethod
    def state(self, link: Link, wanted: Any, until: datetime, cause: Cause) -> None:
        """Record the intent; it is saved without another stream."""

    @abstractmethod
    def refusal(self, link: Link, error: ProviderError | None) -> Refused | None:
        """Return what the sender is told; `error` is why the call is not done."""

    def beaten(self) -> Refused:
        """Return what the sender is told when others keep changing the link."""
        return LinkBusy()

    def request(self, link: Link, wanted: Any, cause: Cause) -> Link:
        """Bring a link to what is wanted in this thread, and return it.

        Raises what the row refuses, ProvisioningError when the network fails, and RateLimited or
        ServiceUnavailable when too many requests wait for it.
        """
        with self.waiting[link.network].slot(link.organization_id):
            until_s = time.monotonic() + WITHIN_S
            return self.log.change(
                link, lambda newest: self._try(newest, wanted, until_s, cause), self.beaten()
            )

    def _is_free(self, link: Link) -> bool:
        return link.ended is not None or (link.open_call is None and link.may_record(self.opens))

    def _try(self, link: Link, wanted: Any, until_s: float, cause: Cause) -> Link:
        if not self._is_free(link):
            link = wait_for(self.log, link, self._is_free, time.monotonic() + left_s(until_s))
        cause = replace(cause, at=self.clock())  # It may have waited for its turn.
        if link.ended is None and not link.may_record(self.opens):
            raise LinkBusy
        link, is_done = self.prepare(link, wanted, until_s, cause)
        if is_done:
            return link
        if left_s(until_s) < CALL_S:  # Others have kept changing the link.
            raise self.beaten()
        self.state(link, wanted, self.clock() + timedelta(seconds=CALL_S), cause)
        self.log.claim(link)
        link, error = self.make_call(link, partial(self.call, link))
        if isinstance(error, OutcomeUnknown):  # Most such calls have succeeded, so it looks once.
            try:
                seen = self.look_up(link, left_s(until_s))
                if self.is_done(link, seen):
                    link, error = self.save(link, seen), None
            except ProviderError as unseen:
                error = unseen
        if (refusal := self.refusal(link, error)) is not None:
            raise refusal
        return link


def left_s(until_s: float) -> float:
    """Return how long a call of a request may take now."""
    return max(0.0, min(CALL_S, until_s - time.monotonic()))


def reason_of(error: ProviderError | None) -> str:
    """Return why a call is not done, as the API has it; None: another process has given it up."""
    if error is None or isinstance(error, OutcomeUnknown):
        return LATE
    return REJECTED if isinstance(error, Rejected) else UNREACHABLE
