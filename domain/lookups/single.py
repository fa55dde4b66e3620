"""The command of a single lookup: the answer and its charge in one commit, or no answer."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from uuid import UUID

import msgspec

from domain.accounts.committer import Change, Command, Committer, Outcome, expire, fail
from domain.accounts.price import Price
from domain.accounts.wallet import Charge, Reference, Wallet, wallet_id
from domain.at_once import WouldWait
from domain.cause import Cause, Clock
from domain.errors import (
    KEY_ERASED,
    BillingNotConfigured,
    Conflict,
    IdempotencyInProgress,
    IdempotencyKeyReused,
    InsufficientBalance,
    NotFound,
    Refused,
    ServiceUnavailable,
)
from domain.ids import derive_id
from domain.log.log import Log
from domain.lookups.answers import Answer, Answers
from domain.lookups.in_flight import InFlight
from domain.lookups.number_lookup import NumberLookup, PersonalAnswer, number_lookup_id
from domain.lookups.ports import Leases, NumberFacts
from domain.months import month_of
from domain.personal import Vault

LEASE = timedelta(seconds=15)  # Longer than any provider call may last.
WAIT_S = 10.0  # How long a twin waits for the first request with its key.
LOOK_S = 0.02  # How often it looks when nothing wakes it.


@dataclass(frozen=True, slots=True)
class LookupRequest:
    """Who asks for which number at which price; `key` is the Idempotency-Key, if any."""

    organization_id: UUID
    phone_number: str
    price_micros: int
    currency: str
    key: str | None


@dataclass(frozen=True, slots=True)
class LookupResult:
    """What was answered; `replayed` when an earlier request with the key got it first."""

    lookup: NumberLookup
    facts: NumberFacts
    replayed: bool


@dataclass(eq=False, slots=True)
class Begun:
    """A lookup that has only to be committed; `leave` gives its place back, once."""

    lookup: NumberLookup
    facts: NumberFacts
    command: Command
    committer: Committer
    leave: Callable[[], None]

    def submit(self, tell: Callable[[], object], ring: Callable[[], object]) -> None:
        """Have it committed. `tell` is called at its end, then, once for many, `ring`."""
        self.command.outcome = Outcome(tell, ring)
        try:
            self.committer.submit(self.command)
        except ServiceUnavailable as error:
            fail([self.command], error)

    def expire(self, age_s: float) -> None:
        """End what has been waited for as long as `Committer.commit` would."""
        expire(self.command, age_s)

    def result(self) -> LookupResult:
        """Return what the outcome of the command makes of it, or raise why there is none."""
        self.command.outcome.result()
        return LookupResult(self.lookup, self.facts, replayed=False)


@dataclass(frozen=True)
class SingleLookup:
    """Answers one number and charges for it.

    Leases spare a remote provider the calls of twins. One in this process is asked sooner than
    they are: then `leases` is None, and the log alone refuses the twin.
    """

    log: Log
    committer: Committer
    vault: Vault
    answers: Answers
    leases: Leases | None
    in_flight: InFlight  # Those that hold a thread.
    postponed: InFlight  # Those that hold none.
    clock: Clock
    new_id: Callable[[], UUID]

    def run(self, request: LookupRequest, cause: Cause) -> LookupResult:
        """Answer, or raise: NumberLookupUnavailable and every refusal of the wallet take nothing.

        With a key the first outcome is given again; IdempotencyKeyReused for another number,
        IdempotencyInProgress when the first request does not end in time. RateLimited where the
        organization has too many under way.
        """
        if request.key is None:
            with self.in_flight.enter(request.organization_id):
                return self._fresh(request, self.new_id(), cause)
        stream_id = number_lookup_id(request.organization_id, request.key)
        replayed = self._replay(request, stream_id)
        if replayed is not None:
            return replayed
        with self.in_flight.enter(request.organization_id):  # A twin that waits holds a thread too.
            if self.leases is None:
                return self._first(request, stream_id, cause)
            return self._alone(self.leases, request, stream_id, cause)

    def begin(self, request: LookupRequest, cause: Cause) -> Begun:
        """Do all that `run` does before the commit, if nothing of it waits; else raise WouldWait.

        Nothing has happened then. So it is where the outcome is a Conflict, which is how a key that
        is not new shows here, or a refusal of the wallet: `run` tells what becomes of those.
        """
        if self.leases is not None or not request.price_micros:
            raise WouldWait
        is_first = request.key is not None
        if request.key is None:
            stream_id = self.new_id()
        else:
            stream_id = number_lookup_id(request.organization_id, request.key)
        leave = self.postponed.take(request.organization_id)
        try:
            lookup, facts, at = self._decide(request, stream_id, cause)
            charge = self._charge(request, lookup, at)
            command = self.committer.prepare(*charge, lookup, is_first=is_first)
        except BaseException as error:
            leave()
            if isinstance(error, Refused):  # Perhaps not, after a look at the log.
                raise WouldWait from None
            raise
        return Begun(lookup, facts, command, self.committer, leave)

    def _alone(
        self, leases: Leases, request: LookupRequest, stream_id: UUID, cause: Cause
    ) -> LookupResult:
        """Be the one who answers, or wait for the outcome of whoever does."""
        holder = self.new_id()
        replayed = self._claim(leases, request, stream_id, holder)
        if replayed is not None:
            return replayed
        try:
            # The first request may have ended between our look and our claim.
            return self._replay(request, stream_id) or self._first(request, stream_id, cause)
        finally:
            leases.release(stream_id, holder)

    def _first(self, request: LookupRequest, stream_id: UUID, cause: Cause) -> LookupResult:
        """Answer for a key that was free when we looked."""
        try:
            return self._fresh(request, stream_id, cause)
        except Refused:
            # Whoever had the key before us may have spent what we were refused for.
            replayed = self._replay(request, stream_id)
            if replayed is None:
                raise
            return replayed

    def _claim(
        self, leases: Leases, request: LookupRequest, stream_id: UUID, holder: UUID
    ) -> LookupResult | None:
        """Take the lease of a key, or wait for the outcome of whoever has it."""
        # So short that it tells requests apart but cannot be traced back to a number.
        fingerprint = derive_id("fingerprint", stream_id, request.phone_number).hex[:4]
        deadline = time.monotonic() + WAIT_S
        while True:
            seen = self.log.appended.count
            running = leases.acquire(stream_id, holder, fingerprint, self.clock() + LEASE)
            if running is None:
                return None
            if running != fingerprint:
                raise IdempotencyKeyReused
            if time.monotonic() > deadline:
                raise IdempotencyInProgress
            self.log.appended.wait(seen, LOOK_S)
            replayed = self._replay(request, stream_id)
            if replayed is not None:
                return replayed

    def _replay(self, request: LookupRequest, stream_id: UUID) -> LookupResult | None:
        lookup = self.log.find(NumberLookup, stream_id)
        if lookup is None:
            return None
        answer = lookup.answer
        clear = self.vault.open(answer.organization_id, lookup.id, answer.personal)
        if clear is None:
            raise NotFound(KEY_ERASED)
        facts = msgspec.json.decode(clear, type=PersonalAnswer).facts
        if facts.phone_number != request.phone_number:
            raise IdempotencyKeyReused
        return LookupResult(lookup, facts, replayed=True)

    def _fresh(self, request: LookupRequest, stream_id: UUID, cause: Cause) -> LookupResult:
        lookup, facts, at = self._decide(request, stream_id, cause)
        try:
            if lookup.answer.price is None:
                self.log.append(lookup)
            else:
                self.committer.commit(*self._charge(request, lookup, at), lookup)
        except Conflict:
            replayed = self._replay(request, stream_id)
            if replayed is None:
                raise
            return replayed
        return LookupResult(lookup, facts, replayed=False)

    def _decide(
        self, request: LookupRequest, stream_id: UUID, cause: Cause
    ) -> tuple[NumberLookup, NumberFacts, Cause]:
        """Return what there is to be committed, and the cause of it: as of the answer."""
        if request.price_micros:
            self._check_balance(request)
        answer = self.answers.one(request.organization_id, request.phone_number)
        at = Cause(self.clock(), cause.request_id)
        return self._lookup(request, stream_id, answer, at), answer.facts, at

    def _check_balance(self, request: LookupRequest) -> None:
        """Spare the provider a call that cannot be paid; the wallet itself decides later."""
        payer = wallet_id(request.organization_id)
        held = self.committer.held_balance(payer)
        if held is not None and held >= request.price_micros:
            return
        wallet = self.log.find(Wallet, payer)
        if wallet is None:
            raise BillingNotConfigured
        if wallet.balance_micros < request.price_micros:
            raise InsufficientBalance(request.price_micros, wallet.balance_micros, wallet.currency)

    def _lookup(
        self, request: LookupRequest, stream_id: UUID, answer: Answer, cause: Cause
    ) -> NumberLookup:
        clear = msgspec.json.encode(PersonalAnswer(answer.facts))
        organization_id, month = request.organization_id, month_of(cause.at)
        price = None
        if request.price_micros:
            transaction_id = derive_id("transaction", stream_id)
            price = Price(request.price_micros, request.currency, transaction_id)
        return NumberLookup.give(
            stream_id,
            cause,
            organization_id=organization_id,
            source=answer.source,
            as_of=answer.as_of,
            provider=answer.provider,
            price=price,
            personal=self.vault.seal(organization_id, month, stream_id, clear),
        )

    def _charge(
        self, request: LookupRequest, lookup: NumberLookup, cause: Cause
    ) -> tuple[UUID, Change]:
        """Return who pays, and the change of that wallet."""
        price = lookup.answer.price
        assert price is not None, "what is free has no charge"
        charge = Charge(
            transaction_id=price.transaction_id,
            kind="lookup",
            amount_micros=price.amount_micros,
            currency=price.currency,
            reference=Reference("lookup", str(lookup.id)),
            description="Number lookup",
        )
        return wallet_id(request.organization_id), lambda wallet: wallet.charge(charge, cause)
