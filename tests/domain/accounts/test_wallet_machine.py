"""Whatever happens to a wallet, in whatever order, its money adds up and nobody overspends."""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule
from msgspec.structs import replace

from domain.accounts.spending import Spending
from domain.accounts.wallet import Charge, ChargeKind, Deposit, Payout, Refund, Reversal, Wallet
from domain.cause import Cause
from domain.errors import ConfigError, InsufficientBalance, NotPossible, SpendingLimit
from domain.log.log import replay
from domain.money import AMOUNT_MICROS_MAX, format_amount
from domain.months import month_of
from tests.domain.build import ORGANIZATION, START, adjustment, charge, refund
from tests.story import MAPPER, state_of, stored_events

SIGNS = st.sampled_from([1, -1])
KINDS: Sequence[ChargeKind] = ("lookup", "lookup", "topup", "monthly_link_fee")


class WalletMachine(RuleBasedStateMachine):
    """A wallet beside the simplest model of one: its signed movements, and what counts of them."""

    def __init__(self) -> None:
        super().__init__()
        self.now = START
        self.wallet = Wallet.open(ORGANIZATION, "EUR", self.cause)
        self.movements: list[int] = []
        self.charges: dict[UUID, int] = {}  # What each charge may still give back.
        self.limit_micros: int | None = None
        self.month, self.spent_micros = "", 0
        self.claim_micros = 0
        self.stored = stored_events(self.wallet)

    @property
    def cause(self) -> Cause:
        return Cause(self.now, "request-1")

    @property
    def balance(self) -> int:
        return sum(self.movements)

    def left_micros(self) -> int:
        """Return what may be spent now; a month that is over counts no more, but not before."""
        assert self.limit_micros is not None
        return self.limit_micros - (self.spent_micros if month_of(self.now) <= self.month else 0)

    def amount(self, data: st.DataObject) -> int:
        """Draw an amount: a small one, a huge one, or one at a bound or just past it."""
        bounds = [self.balance, AMOUNT_MICROS_MAX - self.balance, AMOUNT_MICROS_MAX // 2]
        bounds += [self.left_micros()] if self.limit_micros is not None else []
        near = [each + more for each in bounds for more in (0, 1)]
        near = [each for each in near if 0 < each < AMOUNT_MICROS_MAX]
        return data.draw(st.integers(1, 5_000_000) | st.sampled_from([1, *near]))

    def moved(self, change_micros: int, counts_micros: int = 0) -> None:
        self.movements.append(change_micros)
        if settled := min(self.claim_micros, max(change_micros, 0)):
            self.claim_micros -= settled
            self.movements.append(-settled)
        if month_of(self.now) > self.month:
            self.month, self.spent_micros = month_of(self.now), 0
        self.spent_micros += counts_micros

    @contextmanager
    def refused(self, *errors: type[Exception]) -> Iterator[None]:
        """Expect a refusal that has recorded nothing."""
        with pytest.raises(errors):
            yield
        assert not self.wallet.pending_events

    @rule(days=st.sampled_from([1, 20, 31, -31]))
    def pass_time(self, days: int) -> None:
        self.now += timedelta(days=days)

    @rule(data=st.data())
    def deposit(self, data: st.DataObject) -> None:
        amount = self.amount(data)
        deposit = Deposit.make(ORGANIZATION, str(uuid4()), amount, self.cause)
        if self.balance + amount > AMOUNT_MICROS_MAX:
            with self.refused(NotPossible):
                self.wallet.enter(deposit, "EUR", self.cause)
        else:
            self.wallet.enter(deposit, "EUR", self.cause)
            self.moved(amount)

    @rule(data=st.data(), kinds=st.lists(st.sampled_from(KINDS), min_size=1, max_size=3))
    def book(self, data: st.DataObject, kinds: list[ChargeKind]) -> None:
        """Charge once, or for several things and for what comes back between them: all or none."""
        charges = [charge(format_amount(self.amount(data)), kind=kind) for kind in kinds]
        entries: list[Charge | Refund] = [*charges]
        if len(charges) > 1 and (back := self.refund_of(data)) is not None:
            entries.insert(1, back)
        chosen = sum(e.amount_micros for e in charges if e.kind != "monthly_link_fee")
        total = sum(each.amount_micros for each in charges)
        if self.limit_micros is not None and chosen and chosen > self.left_micros():
            with self.refused(SpendingLimit):  # It is told before the balance.
                self.wallet.book(entries, self.cause)
        elif total > self.balance:
            with self.refused(InsufficientBalance):
                self.wallet.book(entries, self.cause)
        else:
            self.wallet.book(entries, self.cause)
            for each in entries:
                sign = 1 if isinstance(each, Charge) else -1
                self.moved(-sign * each.amount_micros, sign * each.amount_micros)
                if isinstance(each, Charge):
                    self.charges[each.transaction_id] = each.amount_micros
                else:
                    self.charges[each.charge_id] -= each.amount_micros

    def refund_of(self, data: st.DataObject) -> Refund | None:
        if not (given := [each for each, left in self.charges.items() if left]):
            return None
        charge_id = data.draw(st.sampled_from(given))
        return refund(format_amount(data.draw(st.integers(1, self.charges[charge_id]))), charge_id)

    @rule(data=st.data())
    def refund(self, data: st.DataObject) -> None:
        if (wanted := self.refund_of(data)) is not None:
            self.wallet.book([wanted], self.cause)  # However full the wallet is.
            self.moved(wanted.amount_micros, -wanted.amount_micros)
            self.charges[wanted.charge_id] -= wanted.amount_micros

    @rule(data=st.data(), sign=SIGNS)
    def adjust(self, data: st.DataObject, sign: int) -> None:
        amount = sign * self.amount(data)
        most = AMOUNT_MICROS_MAX if sign > 0 else self.balance  # What is too much may be taken.
        if 0 <= self.balance + amount <= most:
            self.wallet.enter(adjustment(amount), "EUR", self.cause)
            self.moved(amount)
        else:
            with self.refused(InsufficientBalance, NotPossible):
                self.wallet.enter(adjustment(amount), "EUR", self.cause)

    @rule(data=st.data(), is_reversal=st.booleans())
    def take_out(self, data: st.DataObject, *, is_reversal: bool) -> None:
        """Reverse a deposit, of which what is lacking is owed; or pay out no more than there is."""
        amount, facts = self.amount(data), {"reason": "why", "value_date": self.now.date()}
        given = (ORGANIZATION, str(uuid4()), amount, self.cause)
        if not is_reversal and amount > self.balance:
            with self.refused(InsufficientBalance):
                self.wallet.enter(Payout.make(*given, **facts), "EUR", self.cause)
        elif not is_reversal:
            self.wallet.enter(Payout.make(*given, **facts), "EUR", self.cause)
            self.moved(-amount)
        else:
            lacking = amount - self.balance
            made = Reversal.make(*given, **facts, deposit=str(uuid4()))
            self.wallet.enter(made, "EUR", self.cause)
            if lacking > 0:
                self.movements.append(lacking)
                self.claim_micros += lacking
            self.moved(-amount)

    @rule(limit=st.none() | st.integers(0, 9_000_000), spent=st.integers(0, 9_000_000))
    def limit(self, limit: int | None, spent: int) -> None:
        """Set a limit, with what counts against it by then, or end it."""
        self.limit_micros, self.month, self.spent_micros = limit, month_of(self.now), spent
        self.wallet.limit_spending(self.spending(), self.cause)

    def spending(self) -> Spending | None:
        limit = self.limit_micros
        return None if limit is None else Spending(limit, self.month, self.spent_micros)

    @rule()
    def take_what_is_not_its_own(self) -> None:
        """Nothing moves it in another currency; to move nothing is a bug of the caller."""
        deposit, back = Deposit.make(ORGANIZATION, "b", 5, self.cause), refund("0.1", ORGANIZATION)
        dollars = charge("0.1", currency="USD")
        for step in (
            lambda: self.wallet.book([dollars], self.cause),
            lambda: self.wallet.book([charge("0.000001"), dollars], self.cause),
            lambda: self.wallet.book([replace(back, currency="USD")], self.cause),
            lambda: self.wallet.enter(deposit, "USD", self.cause),
            lambda: self.wallet.enter(adjustment(5), "USD", self.cause),
        ):
            with self.refused(ConfigError):
                step()
        for nothing in (
            lambda: self.wallet.book([charge("0")], self.cause),
            lambda: self.wallet.book([replace(back, amount_micros=0)], self.cause),
            lambda: self.wallet.enter(adjustment(0), "EUR", self.cause),
        ):
            with self.refused(AssertionError):
                nothing()

    @invariant()
    def the_balance_is_the_sum_and_never_negative(self) -> None:
        assert self.wallet.balance_micros == self.balance
        taken = -sum(each for each in self.movements if each < 0)
        assert 0 <= self.balance <= AMOUNT_MICROS_MAX + taken  # A refund may go past the limit.

    @invariant()
    def while_something_is_owed_there_is_nothing(self) -> None:
        assert (self.wallet.claim_micros or 0) == self.claim_micros
        assert not self.claim_micros or self.balance == 0

    @invariant()
    def it_knows_what_was_spent(self) -> None:
        assert self.wallet.spending == self.spending()
        assert self.wallet.sequence == len(self.movements)

    @invariant()
    def the_replay_of_what_is_stored_equals_the_live_wallet(self) -> None:
        self.stored += stored_events(self.wallet)
        events = [MAPPER.to_domain_event(each) for each in self.stored]
        wallet: Wallet | None = replay(events)  # type: ignore[arg-type]  # topics name our events only
        assert state_of(wallet) == state_of(self.wallet)

    def teardown(self) -> None:
        """Every entry says the balance after it, in a sequence without a gap."""
        sequence = balance = 0
        for stored in self.stored[1:]:
            entry: Any = MAPPER.to_domain_event(stored)
            if isinstance(entry, Wallet.Moved):
                movement, sequence = self.movements[sequence], sequence + 1
                balance += movement
                assert entry.change_micros == movement
            assert (entry.sequence, entry.balance_micros) == (sequence, balance)
        assert sequence == len(self.movements)


# Thirty stories of forty steps; three hundred with SOAK=1.
STORIES = 300 if os.environ.get("SOAK") == "1" else 30
TestWallet = pytest.mark.rounds(pytest.mark.slow(WalletMachine.TestCase))
TestWallet.settings = settings(max_examples=STORIES, stateful_step_count=40, deadline=None)


@pytest.mark.parametrize(("days", "spent_micros"), [(-40, 9), (0, 9), (40, 2)])
def test_only_a_later_month_begins_with_nothing_spent(days: int, spent_micros: int) -> None:
    at = START + timedelta(days=days)
    spending = Spending(10, month_of(START), 7)
    assert spending.after(-2, at) == Spending(10, max(month_of(START), month_of(at)), spent_micros)
    left = spending.left_micros(at)
    assert left == 12 - spent_micros
    spending.refuse_beyond(left, "EUR", at)
    with pytest.raises(SpendingLimit):
        spending.refuse_beyond(left + 1, "EUR", at)
