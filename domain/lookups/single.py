"""A single lookup, and its command: the answer and its charge in one commit, or no answer."""

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from uuid import UUID

import msgspec

from domain.accounts.committer import Command, Committer, expire, fail
from domain.accounts.paid_price import PaidPrice, price_of
from domain.accounts.refund_by_hand import Refundable, RefundByHand
from domain.accounts.wallet import Charge, Wallet, wallet_id
from domain.blocking import WouldBlock, blocking
from domain.cause import Cause, Clock
from domain.cost import Cost
from domain.errors import (
    KEY_ERASED,
    BillingNotConfigured,
    Conflict,
    IdempotencyInProgress,
    IdempotencyKeyReused,
    NotFound,
    NumberLookupUnavailable,
    Refused,
    refuse_other,
)
from domain.ids import derive_id
from domain.limiter import Limiter
from domain.log.aggregate import Created, itself, sets
from domain.log.log import Log
from domain.lookups.answers import Answer, Answers, Source
from domain.lookups.ports import Details, Leases, NumberFacts
from domain.months import month_of
from domain.personal import Sealed, Vault

EITHER = "phone_number or max_age"
LEASE = timedelta(seconds=15)  # Longer than any provider call may last.
WAIT_S = 10.0  # How long a twin waits for the first request with its key.
POLL_S = 0.02  # How often the twin reads the log when nothing wakes it.


class PersonalAnswer(msgspec.Struct, frozen=True, omit_defaults=True):
    """The personal part of an answer, and what its request is known by; sealed in the event."""

    facts: NumberFacts
    told: Details | None = None
    max_age_s: int | None = None  # What a request with a key asked for.


class NumberLookup(Refundable):
    """One answer given to one organization."""

    TOPIC = "number_lookup"
    KIND = "lookup"

    class Answered(Created):
        """`price` is None when lookups were free at that time; `cost`, when it is not known.

        An answer from the cache has cost nothing.
        """

        TOPIC = "number_lookup.answered"
        IS_STEP = True
        SETS = sets("organization_id", answer=itself)

        organization_id: UUID
        source: Source
        as_of: datetime
        provider: str
        price: PaidPrice | None
        personal: Sealed
        cost: Cost | None = field(default=None, kw_only=True)

    class RefundedByHand(RefundByHand):
        TOPIC = "number_lookup.refunded_by_hand"

    answer: Answered

    def paid(self) -> Iterable[tuple[PaidPrice, int]]:
        return [(self.answer.price, 0)] if self.answer.price is not None else []


def number_lookup_id(organization_id: UUID, key: str) -> UUID:
    """Return the stream of an idempotent lookup.

    One attempt per key is enough: a lookup that fails appends nothing, so its key stays free.
    """
    return derive_id("number_lookup", organization_id, key, 1)


@dataclass(frozen=True, slots=True)
class LookupRequest:
    """Who asks for which number, and the price; `key` is the Idempotency-Key, if any.

    `max_age_s` bounds the age of an answer of the cache.
    """

    organization_id: UUID
    phone_number: str
    price_micros: int
    currency: str
    key: str | None
    max_age_s: int | None = None


@dataclass(frozen=True, slots=True)
class LookupResult:
    """The answer; `replayed`: an earlier request with the key got it."""

    lookup: NumberLookup
    facts: NumberFacts
    replayed: bool
    max_age_s: int | None = None


@dataclass(eq=False, slots=True)
class PendingLookup:
    """A lookup that only has to be committed."""

    lookup: NumberLookup
    facts: NumberFacts
    command: Command
    committer: Committer
    count: Callable[[Source], None]

    def submit(self, notify: Callable[[], object], wake: Callable[[], object]) -> None:
        """Queue its commit. `notify` is called at the outcome, then `wake`, once for many."""
        self.command.outcome.notify, self.command.outcome.wake = notify, wake
        try:
            self.committer.submit(self.command)
        except Exception as error:  # noqa: BLE001  # Whatever the error, it is the outcome.
            fail([self.command], error)

    def expire(self, age_s: float) -> None:
        """Fail the lookup if it has waited as long as `Committer.commit` would."""
        expire(self.command, age_s)

    def result(self) -> LookupResult:
        """Return the result of the committed lookup, or raise the error of its command; once."""
        self.command.outcome.result()
        self.count(self.lookup.answer.source)
        return LookupResult(self.lookup, self.facts, replayed=False)


@dataclass(frozen=True)
class SingleLookup:
    """Answers one number and charges for it.

    Of twins, requests with the same key at once, a lease lets only one call a remote provider. A
    provider in this process answers faster than a lease could be taken. For it `leases` is None,
    and only the log refuses the second twin.
    """

    log: Log
    committer: Committer
    vault: Vault
    answers: Answers
    leases: Leases | None
    in_flight: Limiter  # Of lookups that hold a thread.
    clock: Clock
    new_id: Callable[[], UUID]

    def run(self, request: LookupRequest, cause: Cause) -> LookupResult:
        """Answer and charge; NumberLookupUnavailable and refusals of the wallet charge nothing.

        With a key the first answer is given again. Raises IdempotencyKeyReused for another number
        or `max_age_s`, IdempotencyInProgress when the first request does not end in time,
        RateLimited when the organization has too many lookups under way.
        """
        try:
            result = self._run(request, cause)
        except NumberLookupUnavailable:
            self.answers.count(None)
            raise
        if not result.replayed:
            self.answers.count(result.lookup.answer.source)
        return result

    def _run(self, request: LookupRequest, cause: Cause) -> LookupResult:
        if request.key is None:
            with self.in_flight.slot(request.organization_id):
                return self._fresh(request, self.new_id(), cause)
        stream_id = number_lookup_id(request.organization_id, request.key)
        replayed = self._replay(request, stream_id)
        if replayed is not None:
            return replayed
        with self.in_flight.slot(request.organization_id):  # A twin that waits holds a thread too.
            if self.leases is None:
                return self._fresh(request, stream_id, cause)
            return self._alone(self.leases, request, stream_id, cause)

    def prepare(self, request: LookupRequest, cause: Cause) -> PendingLookup:
        """Do what `run` does before the commit, or raise WouldBlock if that would have to wait.

        Nothing has happened if it raises. Nothing has happened either if the commit ends in a
        Conflict (a key that is not new) or a refusal of the wallet; then `run` finds the right
        answer.
        """
        if self.leases is not None or not request.price_micros:
            raise WouldBlock
        key, owner = request.key, request.organization_id
        stream_id = self.new_id() if key is None else number_lookup_id(owner, key)
        try:
            lookup, facts, at = self._decide(request, stream_id, cause)
            charges = _charges_of(lookup)
            command = self.committer.prepare(
                wallet_id(owner), lambda it: it.book(charges, at), lookup, is_first=key is not None
            )
        except Refused:  # The log may have more money; `run` reads it.
            raise WouldBlock from None
        return PendingLookup(lookup, facts, command, self.committer, self.answers.count)

    def _alone(
        self, leases: Leases, request: LookupRequest, stream_id: UUID, cause: Cause
    ) -> LookupResult:
        """Answer, or wait for the outcome of the request that holds the lease."""
        # Long enough to tell requests apart, and too short to be traced back to a number.
        wanted = request.phone_number, str(request.max_age_s)
        fingerprint = derive_id("fingerprint", stream_id, *wanted).hex[:4]
        holder = f"{fingerprint} {self.new_id().hex}"
        replayed = self._claim(leases, request, stream_id, holder)
        if replayed is not None:
            return replayed
        try:
            # The first request may have ended between our look and our lease.
            return self._replay(request, stream_id) or self._fresh(request, stream_id, cause)
        finally:
            leases.release(stream_id, holder)

    def _claim(
        self, leases: Leases, request: LookupRequest, stream_id: UUID, holder: str
    ) -> LookupResult | None:
        """Take the lease of a key, or wait for the outcome of its holder."""
        deadline = time.monotonic() + WAIT_S
        while True:
            seen = self.log.appended.count
            running = leases.acquire(stream_id, holder, self.clock() + LEASE)
            if running is None:
                return None
            if running.split()[0] != holder.split(maxsplit=1)[0]:
                # The holder may be the one that reused the key, if it has our outcome by now.
                replayed = self._replay(request, stream_id)
                if replayed is None:
                    raise IdempotencyKeyReused(EITHER)
                return replayed
            if time.monotonic() > deadline:
                raise IdempotencyInProgress
            with blocking():
                self.log.appended.wait(seen, POLL_S)
            replayed = self._replay(request, stream_id)
            if replayed is not None:
                return replayed

    def read(self, organization_id: UUID, lookup_id: UUID) -> LookupResult:
        """Return an earlier answer to an organization; NotFound once it has been erased."""
        found = self._load(lookup_id)
        if found is None or found.lookup.answer.organization_id != organization_id:
            raise NotFound
        return found

    def _load(self, stream_id: UUID, erased: str = "") -> LookupResult | None:
        lookup = self.log.find(NumberLookup, stream_id)
        if lookup is None:
            return None
        answer = lookup.answer
        clear = self.vault.open(answer.organization_id, lookup.id, answer.personal)
        if clear is None:
            raise NotFound(erased)
        found = msgspec.json.decode(clear, type=PersonalAnswer)
        return LookupResult(lookup, found.facts, replayed=True, max_age_s=found.max_age_s)

    def _replay(self, request: LookupRequest, stream_id: UUID) -> LookupResult | None:
        found = self._load(stream_id, KEY_ERASED)
        if found is not None:
            refuse_other(
                phone_number=found.facts.phone_number != request.phone_number,
                max_age=found.max_age_s != request.max_age_s,
            )
        return found

    def _fresh(self, request: LookupRequest, stream_id: UUID, cause: Cause) -> LookupResult:
        owner = request.organization_id
        try:
            lookup, facts, at = self._decide(request, stream_id, cause)
            self.committer.commit_entries(owner, _charges_of(lookup), at, lookup)
        except (Conflict, Refused) as error:
            # The request that had the key before us may have spent the money that we lack.
            is_ours = request.key is None and isinstance(error, Refused)
            replayed = None if is_ours else self._replay(request, stream_id)
            if replayed is None:
                raise
            return replayed
        return LookupResult(lookup, facts, replayed=False)

    def _decide(
        self, request: LookupRequest, stream_id: UUID, cause: Cause
    ) -> tuple[NumberLookup, NumberFacts, Cause]:
        """Return a lookup to be committed, its facts, and a cause at the time of the answer."""
        if request.price_micros:
            self._check_balance(request, cause)
        max_age = None if request.max_age_s is None else timedelta(seconds=request.max_age_s)
        answer = self.answers.one(request.organization_id, request.phone_number, max_age)
        # A live answer is dated when it came; one of the cache is older than this lookup.
        now = answer.as_of if answer.source == "live" else self.clock()
        at = Cause(now, cause.request_id)
        return self._lookup(request, stream_id, answer, at), answer.facts, at

    def _check_balance(self, request: LookupRequest, cause: Cause) -> None:
        """Save the provider a call that cannot be paid; the wallet itself decides later."""
        payer = wallet_id(request.organization_id)
        funds = self.committer.cached_funds(payer, request.currency, cause.at)
        if funds is not None and funds >= request.price_micros:
            return
        wallet = self.log.find(Wallet, payer)
        if wallet is None:
            raise BillingNotConfigured
        wallet.refuse_overspending(request.price_micros, cause.at)
        wallet.refuse_unpayable(request.price_micros, request.currency)

    def _lookup(
        self, request: LookupRequest, stream_id: UUID, answer: Answer, cause: Cause
    ) -> NumberLookup:
        age_s = None if request.key is None else request.max_age_s
        clear = msgspec.json.encode(PersonalAnswer(answer.facts, answer.details, age_s))
        organization_id, month = request.organization_id, month_of(cause.at)
        return NumberLookup.begin(
            NumberLookup.Answered,
            cause,
            stream_id,
            organization_id=organization_id,
            source=answer.source,
            as_of=answer.as_of,
            provider=answer.provider,
            price=price_of(stream_id, request.price_micros, request.currency),
            personal=self.vault.seal(organization_id, month, stream_id, clear),
            cost=answer.cost,
        )


def _charges_of(lookup: NumberLookup) -> list[Charge]:
    return lookup.debit(lookup.answer.price, "Number lookup", {})
