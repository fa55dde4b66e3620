"""The command of a single lookup: the answer and its charge in one commit, or no answer."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from uuid import UUID

import msgspec

from domain.application import Log
from domain.cause import Cause, Clock, month_of
from domain.commands.answers import Answer, Answers
from domain.commands.in_flight import InFlight
from domain.committer import Committer
from domain.errors import (
    KEY_ERASED,
    BillingNotConfigured,
    Conflict,
    IdempotencyInProgress,
    IdempotencyKeyReused,
    InsufficientBalance,
    NotFound,
    Refused,
)
from domain.ids import derive_id
from domain.number_lookup import NumberLookup, PersonalAnswer, number_lookup_id
from domain.ports import Leases, NumberFacts, Vault
from domain.price import Price
from domain.wallet import Charge, Reference, Wallet, wallet_id

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
    in_flight: InFlight
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
        if request.price_micros:
            self._check_balance(request)
        return self._answer(request, stream_id, cause)

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

    def _answer(self, request: LookupRequest, stream_id: UUID, cause: Cause) -> LookupResult:
        answer = self.answers.one(request.organization_id, request.phone_number)
        at = Cause(self.clock(), cause.request_id)
        lookup = self._lookup(request, stream_id, answer, at)
        try:
            self._commit(request, lookup, at)
        except Conflict:
            replayed = self._replay(request, stream_id)
            if replayed is None:
                raise
            return replayed
        return LookupResult(lookup, answer.facts, replayed=False)

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

    def _commit(self, request: LookupRequest, lookup: NumberLookup, cause: Cause) -> None:
        price = lookup.answer.price
        if price is None:
            self.log.append(lookup)
            return
        charge = Charge(
            transaction_id=price.transaction_id,
            kind="lookup",
            amount_micros=price.amount_micros,
            currency=price.currency,
            reference=Reference("lookup", str(lookup.id)),
            description="Number lookup",
        )
        self.committer.commit(
            wallet_id(request.organization_id),
            lambda wallet: wallet.charge(charge, cause),
            lookup,
        )
