"""Whatever happens to a wallet, in whatever order, its money adds up."""

import os
from uuid import UUID, uuid4

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from domain.accounts.wallet import Deposit, Wallet
from domain.errors import InsufficientBalance, NotPossible
from domain.log.log import replay
from domain.money import AMOUNT_MICROS_MAX, format_amount
from tests.domain.build import ORGANIZATION, adjustment, cause, charge, refund
from tests.story import MAPPER, state_of, stored_events

SMALL = st.integers(1, 5_000_000)
HUGE = st.integers(AMOUNT_MICROS_MAX - 10_000_000, AMOUNT_MICROS_MAX - 1)
AMOUNTS = st.one_of(SMALL, SMALL, SMALL, HUGE)


class WalletMachine(RuleBasedStateMachine):
    """A wallet beside the simplest model of one: the list of its signed movements."""

    def __init__(self) -> None:
        super().__init__()
        self.wallet = Wallet.open(ORGANIZATION, "EUR", cause())
        self.movements: list[int] = []
        self.charges: dict[UUID, int] = {}  # What each charge may still give back.
        self.stored = stored_events(self.wallet)

    @property
    def balance(self) -> int:
        return sum(self.movements)

    @rule(amount=AMOUNTS)
    def deposit(self, amount: int) -> None:
        deposit = Deposit.make(ORGANIZATION, str(uuid4()), amount, cause())
        if self.balance + amount > AMOUNT_MICROS_MAX:
            with pytest.raises(NotPossible):
                self.wallet.deposit(deposit, "EUR", cause())
        else:
            self.wallet.deposit(deposit, "EUR", cause())
            self.movements.append(amount)

    @rule(amount=AMOUNTS)
    def charge(self, amount: int) -> None:
        wanted = charge(format_amount(amount))
        if amount > self.balance:
            with pytest.raises(InsufficientBalance):
                self.wallet.charge(wanted, cause())
        else:
            self.wallet.charge(wanted, cause())
            self.movements.append(-amount)
            self.charges[wanted.transaction_id] = amount

    @rule(data=st.data())
    def refund(self, data: st.DataObject) -> None:
        open_charges = [each for each, left in self.charges.items() if left]
        if not open_charges:
            return
        charge_id = data.draw(st.sampled_from(open_charges))
        amount = data.draw(st.integers(1, self.charges[charge_id]))
        wanted = refund(format_amount(amount), charge_id)
        self.wallet.refund(wanted, cause())  # However full the wallet is.
        self.movements.append(amount)
        self.charges[charge_id] -= amount

    @rule(amount=AMOUNTS, sign=st.sampled_from([1, -1]))
    def adjust(self, amount: int, sign: int) -> None:
        after = self.balance + sign * amount
        if 0 <= after <= AMOUNT_MICROS_MAX:
            self.wallet.adjust(adjustment(sign * amount), "EUR", cause())
            self.movements.append(sign * amount)
        else:
            with pytest.raises((InsufficientBalance, NotPossible)):
                self.wallet.adjust(adjustment(sign * amount), "EUR", cause())

    @invariant()
    def the_balance_is_the_sum_and_never_negative(self) -> None:
        assert self.wallet.balance_micros == self.balance
        taken = -sum(each for each in self.movements if each < 0)
        assert 0 <= self.balance <= AMOUNT_MICROS_MAX + taken  # A refund may go past the limit.

    @invariant()
    def the_sequence_counts_the_movements(self) -> None:
        assert self.wallet.sequence == len(self.movements)

    @invariant()
    def the_replay_of_what_is_stored_equals_the_live_wallet(self) -> None:
        self.stored += stored_events(self.wallet)
        events = [MAPPER.to_domain_event(each) for each in self.stored]
        wallet: Wallet | None = replay(events)  # type: ignore[arg-type]  # topics name our events only
        assert state_of(wallet) == state_of(self.wallet)

    def teardown(self) -> None:
        """Every entry says the balance after it, in a sequence without a gap."""
        entries = [MAPPER.to_domain_event(each) for each in self.stored[1:]]
        assert [each.sequence for each in entries] == list(range(1, len(entries) + 1))  # type: ignore[attr-defined]  # entries of a wallet
        balance = 0
        for entry, movement in zip(entries, self.movements, strict=True):
            balance += movement
            assert entry.balance_micros == balance  # type: ignore[attr-defined]  # the same
            signed = isinstance(entry, Wallet.Adjusted)
            assert entry.amount_micros == (movement if signed else abs(movement))  # type: ignore[attr-defined]  # the same


# Thirty stories of forty steps; three hundred with SOAK=1.
STORIES = 300 if os.environ.get("SOAK") == "1" else 30
TestWallet = pytest.mark.rounds(pytest.mark.slow(WalletMachine.TestCase))
TestWallet.settings = settings(max_examples=STORIES, stateful_step_count=40, deadline=None)
