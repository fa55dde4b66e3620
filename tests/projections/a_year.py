"""A year of trade in some wallets: fees that come late, clocks that are set back, quiet months."""

import random
from collections.abc import Sequence
from contextlib import suppress
from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

from domain.accounts.wallet import (
    CHARGED_FOR,
    Booking,
    Charge,
    ChargeKind,
    Deposit,
    Payout,
    Reference,
    Refund,
    Reversal,
    Wallet,
)
from domain.cause import Cause
from domain.errors import InsufficientBalance
from tests.installation import Process, SetClock

KINDS: Sequence[ChargeKind] = (
    "activation",
    "topup",
    "lookup",
    "lookup",
    "lookup",
    "bulk_lookup",
    "monthly_link_fee",
)
FOR = {kind: reference for reference, kind in CHARGED_FOR.items()}


class Year:
    """Wallets that trade until the clock says that the year is over; a seed decides."""

    def __init__(self, process: Process, clock: SetClock, seed: int, wallets: int = 3) -> None:
        self._process = process
        self._clock = clock
        self._dice = random.Random(seed)
        self._wallets: dict[UUID, Wallet] = {}
        self._count = wallets
        self._charges: dict[UUID, list[Charge]] = {}
        self._deposits: dict[UUID, list[Deposit]] = {}

    @property
    def organizations(self) -> list[UUID]:
        return [*self._wallets]

    def trade(self, days_max: float = 9.0) -> None:
        """Let some time pass, then let somebody pay in, buy, or get money back."""
        self._clock.forward(days=self._dice.random() * days_max)
        self._process.month_end.run()
        if len(self._wallets) < self._count:
            owner = uuid4()
            self._wallets[owner] = Wallet.open(owner, "USD", self._process.cause())
            self._pay_in(owner)
            return
        owner = self._dice.choice(self.organizations)
        happenings = (self._pay_in, self._buy, self._buy, self._give_back, self._pay_back)
        self._dice.choice(happenings)(owner)

    def _cause(self) -> Cause:
        """Return when it happened; it may reach the log late, or from a machine that is ahead."""
        hours = self._dice.choice([0, 0, 0, 0.01, 1, 24, 24 * 40, -0.5])
        return Cause(self._clock.now - timedelta(hours=hours), str(uuid4()))

    def _pay_in(self, owner: UUID) -> None:
        cause, wallet = self._cause(), self._wallets[owner]
        made = Deposit.make(owner, str(uuid4()), self._dice.randrange(1, 50_000_000), cause)
        wallet.enter(made, "USD", cause)
        self._process.log.append(made, wallet)
        self._deposits.setdefault(owner, []).append(made)

    def _pay_back(self, owner: UUID) -> None:
        """Reverse a deposit, which may leave a claim, or pay out a part of what there is."""
        cause, wallet = self._cause(), self._wallets[owner]
        facts: dict[str, Any] = {"reason": "why", "value_date": cause.at.date()}
        kind: type[Booking] = Payout
        micros = self._dice.randrange(1, 5_000_000)
        if (deposits := self._deposits.get(owner)) and self._dice.random() < 0.5:
            deposit = deposits.pop()
            kind, micros = Reversal, deposit.amount_micros
            facts["deposit"] = deposit.reference
        made = kind.make(owner, str(uuid4()), micros, cause, **facts)
        with suppress(InsufficientBalance):
            wallet.enter(made, "USD", cause)
            self._process.log.append(made, wallet)

    def _buy(self, owner: UUID) -> None:
        cause, wallet = self._cause(), self._wallets[owner]
        kind, plan = self._dice.choice(KINDS), self._dice.choice("abc")
        has_plan = kind in {"activation", "topup"}
        charge = Charge(
            transaction_id=uuid4(),
            kind=kind,
            amount_micros=self._dice.randrange(1, 5_000_000),
            currency="USD",
            reference=Reference(FOR[kind], str(uuid4())),
            description=kind,
            metadata={"plan_id": f"plan-{plan}", "plan_name": f"Plan {plan}"} if has_plan else {},
        )
        try:
            wallet.book([charge], cause)
        except InsufficientBalance:
            return
        self._charges.setdefault(owner, []).append(charge)
        self._process.log.append(wallet)

    def _give_back(self, owner: UUID) -> None:
        if owner not in self._charges:
            return
        charge = self._dice.choice(self._charges[owner])
        back = Refund(
            transaction_id=uuid4(),
            charge_id=charge.transaction_id,
            amount_micros=self._dice.randrange(1, charge.amount_micros + 1),
            currency="USD",
            reference=charge.reference,
            description="Refund",
            reason="by_hand",
            metadata=charge.metadata,
        )
        self._wallets[owner].book([back], self._cause())
        self._process.log.append(self._wallets[owner])
