"""What the bank and the providers say is booked once, and what was open comes to zero."""

import dataclasses
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from datetime import date
from pathlib import Path
from typing import cast

import pytest
from msgspec.structs import replace

from app.books.journal import book, daily, in_cents, moves_of
from app.books.margin import By, margin_of
from app.books.reconcile import (
    Reconciliation,
    Theirs,
    costs_of,
    deposits_of,
    reconcile_costs,
    reconcile_deposits,
)
from app.books.trial_balance import month_balance, trial_balance
from domain.cause import Cause
from domain.cost import Cost
from domain.errors import NotPossible
from domain.finance.settlement import settle
from domain.months import month_of
from tests.app.books.test_beancount import balances, ledger_of, loaded, ours, owned, trade
from tests.installation import Installation, Process, SetClock
from tests.projections.link_steps import LinkSteps, bought
from tests.seeds import sqlite_seed
from tests.workers.fees import clock_at

DAY = date(2026, 2, 27)
clock = clock_at("2026-01-20")


@pytest.fixture
def process(tmp_path: Path, clock: SetClock) -> Iterator[Process]:
    environment = {"COST_PER_LOOKUP": "offline=0.001"}
    with closing(Installation(tmp_path, like=sqlite_seed(), **environment)) as made:
        yield made.process(clock)


def bank(process: Process) -> list[Theirs]:
    """Return the lines of a bank that has moved all that the log knows."""
    known = [*deposits_of(process.log)]
    return [
        Theirs(n, each.reference, each.amount_micros or 0, each.currency or "", DAY)
        for n, each in enumerate(known)
    ]


def booked(process: Process, found: Reconciliation, *, back: bool = False) -> list[bool]:
    return [settle(process.log, it, process.cause(), back=back) for it in found.settled]


def invoiced(process: Process, provider: str, more_micros: int = 0) -> Reconciliation:
    """Return the invoice of a provider, by days, which asks for so much more."""
    lines = [
        Theirs(n, each.reference, each.amount_micros or 0, each.currency or "EUR", DAY)
        for n, each in enumerate(costs_of(process.log, provider, "day"))
    ]
    lines[0] = dataclasses.replace(lines[0], amount_micros=lines[0].amount_micros + more_micros)
    return reconcile_costs(process.log, lines, provider, "day", invoice=f"INV-{provider}")


def held(process: Process) -> dict[tuple[str, str], int]:
    return {line[:2]: line.micros for line in trial_balance(process.log).lines}


def test_what_is_open_comes_to_zero_in_a_played_year(process: Process, clock: SetClock) -> None:
    trade(process, clock, 60, 3)
    owner = process.organization("50.00")
    far = replace(bought("Far", "4.00"), cost=Cost(1_500_000, "EUR"))
    LinkSteps(process, owner, plan=far).activate()
    paid_in = held(process)["Assets:Deposits", "USD"]
    assert paid_in
    every = reconcile_deposits(process.log, bank(process))
    assert every.ok
    assert all(booked(process, every))
    assert not any(booked(process, reconcile_deposits(process.log, bank(process))))
    for provider in ("offline", "simulated"):
        assert booked(process, invoiced(process, provider, 70_000)) == [True]
    open_now = held(process)
    owed = {key: n for key, n in open_now.items() if key[0].startswith("Liabilities:Providers")}
    assert len(owed) == 2
    assert all(owed.values())
    bills = [each for each in bank(process) if each.reference.startswith("INV-")]
    assert reconcile_deposits(process.log, []).missing_there == [*deposits_of(process.log)][:-2], (
        "an invoice that no line names waits to be paid"
    )
    assert booked(process, reconcile_deposits(process.log, bills)) == [True, True]
    now = held(process)
    assert now["Assets:Deposits", "USD"] == 0
    assert {now[key] for key in owed} == {0}
    assert now["Assets:Bank", "EUR"] == owed["Liabilities:Providers:Simulated", "EUR"]
    assert now["Assets:Bank", "USD"] == paid_in + owed["Liabilities:Providers:Offline", "USD"]
    assert not any(trial_balance(process.log).differences.values())
    for by in ("month", "provider", "org"):
        costs = margin_of(process.log, cast("By", by)).total.cost_micros("EUR")
        assert costs == now["Expenses:Providers:Simulated", "EUR"], "as invoiced"

    process.projector.catch_up()
    entries, errors = loaded(ledger_of(process.log))
    assert errors == []
    assert balances(entries) == ours(process)
    entries, errors = loaded(ledger_of(process.log, since=process.log.head() - 1))
    assert errors == []
    assert owned(balances(entries)) == owned(ours(process))
    entries, errors = loaded(ledger_of(process.log, organization_id=owner))
    assert errors == []
    assert ("Assets:Deposits", "USD") not in balances(entries), "what the bank moved of its own"

    month = month_of(clock.now)
    clock.forward(days=40)
    process.month_end.run()
    balance = month_balance(process.log, month)
    moves = [*moves_of(process.log, month, balance)]
    for single in (True, False):
        posted = {}
        for each in book(moves if single else daily(moves), balance, month, single=single):
            for account, cents in ((each.debit, each.cents), (each.credit, -each.cents)):
                key = account, each.move.currency
                posted[key] = posted.get(key, 0) + cents
        for opening, after in balance.lines:
            change = in_cents(after.micros) - in_cents(opening.micros)
            assert posted.get(after[:2], 0) == change, after


def test_it_is_booked_once_however_many_ask_for_it(process: Process) -> None:
    process.organization("50.00")
    (facts,) = reconcile_deposits(process.log, bank(process)).settled

    def at_once(number: int) -> bool:
        return settle(process.log, facts, Cause(process.cause().at, f"cli-{number}"))

    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(at_once, range(8))) == 1
    assert held(process)["Assets:Bank", "USD"] == 50_000_000


def test_what_was_booked_is_taken_back_and_booked_again(process: Process) -> None:
    process.organization("50.00")
    found = reconcile_deposits(process.log, bank(process))
    for back, done in ((True, False), (False, True), (False, False), (True, True), (True, False)):
        assert booked(process, found, back=back) == [done], (back, done)
    assert held(process)["Assets:Bank", "USD"] == 0
    assert booked(process, found) == [True]
    assert held(process)["Assets:Deposits", "USD"] == 0


def test_an_invoice_that_is_paid_or_of_another_amount_stays(process: Process) -> None:
    process.look_up(process.organization("50.00"))
    found = invoiced(process, "offline")
    assert booked(process, found) == [True]
    with pytest.raises(NotPossible, match="another amount, so take it back first: INV-offline"):
        booked(process, invoiced(process, "offline", 1))
    bill = [each for each in bank(process) if each.reference == "INV-offline"]
    half = [Theirs(1, "INV-offline", -400, "USD", DAY)]
    assert [its.reference for _, its in reconcile_deposits(process.log, half).different] == [
        "INV-offline"
    ]
    parts = [*half, Theirs(2, "INV-offline", -600, "USD", DAY)]
    assert len(reconcile_deposits(process.log, parts).settled) == 1, "lines are added up"
    paid = reconcile_deposits(process.log, bill)
    assert booked(process, paid) == [True]
    with pytest.raises(NotPossible, match="so take back the payment first: INV-offline"):
        booked(process, found, back=True)
    assert booked(process, paid, back=True) == [True]
    assert booked(process, found, back=True) == [True]
    assert not [each for each in bank(process) if each.reference == "INV-offline"]
    assert held(process)["Liabilities:Providers:Offline", "USD"] == -1_000
    assert booked(process, invoiced(process, "offline", 1)) == [True]


def test_an_invoice_is_in_one_currency(process: Process) -> None:
    lines = [Theirs(1, "a", 1, "USD", DAY), Theirs(2, "b", 1, "EUR", DAY)]
    for given, told in ((lines, "EUR, USD"), ([], "none")):
        with pytest.raises(NotPossible, match=f"in one currency: here are {told}"):
            reconcile_costs(process.log, given, "offline", invoice="INV-1")


def test_a_reference_of_two_organizations_is_booked_for_each(process: Process) -> None:
    for _ in range(2):
        owner = process.organization()
        process.accounts.move("deposit", owner, 7_000_000, "twin", process.cause())
    lines = [Theirs(1, "twin", 7_000_000, "USD", DAY)]
    assert not reconcile_deposits(process.log, lines).settled, (
        "one is missing, and nobody knows which"
    )
    found = reconcile_deposits(process.log, [*lines, Theirs(2, "twin", 7_000_000, "USD", DAY)])
    assert booked(process, found) == [True, True]
    assert held(process)["Assets:Bank", "USD"] == 14_000_000
