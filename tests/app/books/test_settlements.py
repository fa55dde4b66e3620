"""What the bank and the providers say is booked once, and what was open comes to zero."""

import dataclasses
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from datetime import date
from pathlib import Path
from typing import cast

import pytest
from msgspec.structs import replace

from app.books.journal import DEFAULT, book, daily, datev, in_cents, moves_of, of_program
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
from app.cli.import_files import read_account_file
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


@pytest.fixture
def played(process: Process, clock: SetClock) -> Process:
    """A year of trade whose deposits, invoices and payments the bank and the providers know."""
    trade(process, clock, 60, 3)
    far = replace(bought("Far", "4.00"), cost=Cost(1_500_000, "EUR"))
    LinkSteps(process, process.organization("50.00"), plan=far).activate()
    return process


def test_what_is_open_comes_to_zero_in_a_played_year(played: Process) -> None:
    log, paid_in = played.log, held(played)["Assets:Deposits", "USD"]
    assert paid_in
    every = reconcile_deposits(log, bank(played))
    assert every.ok
    assert all(booked(played, every))
    assert not any(booked(played, reconcile_deposits(log, bank(played))))
    for provider in ("offline", "simulated"):
        assert booked(played, invoiced(played, provider, 70_000)) == [True]
    owed = {key: n for key, n in held(played).items() if key[0].startswith("Liabilities:Providers")}
    assert len(owed) == 2
    assert all(owed.values())
    bills = [each for each in bank(played) if each.reference.startswith("INV-")]
    missing = reconcile_deposits(log, []).missing_there
    assert missing == [*deposits_of(log)][: -len(bills)], "an invoice waits until a line names it"
    assert booked(played, reconcile_deposits(log, bills)) == [True, True]
    now = held(played)
    assert {now[key] for key in (*owed, ("Assets:Deposits", "USD"))} == {0}
    assert now["Assets:Bank", "EUR"] == owed["Liabilities:Providers:Simulated", "EUR"]
    assert now["Assets:Bank", "USD"] == paid_in + owed["Liabilities:Providers:Offline", "USD"]
    assert not any(trial_balance(log).differences.values())
    for by in ("month", "provider", "org"):
        costs = margin_of(log, cast("By", by)).total.cost_micros("EUR")
        assert costs == now["Expenses:Providers:Simulated", "EUR"], "as invoiced"


def settled(process: Process) -> None:
    """Book all that is open."""
    for provider in ("offline", "simulated"):
        booked(process, invoiced(process, provider, 70_000))
    assert all(booked(process, reconcile_deposits(process.log, bank(process))))


def test_beancount_has_the_same_balances(played: Process) -> None:
    settled(played)
    played.projector.catch_up()
    for since in (None, played.log.head() - 1):
        entries, errors = loaded(ledger_of(played.log, since=since))
        assert errors == []
        assert owned(balances(entries)) == owned(ours(played))
    owner = next(it for each in deposits_of(played.log) if (it := each.settles.organization_id))
    entries, errors = loaded(ledger_of(played.log, organization_id=owner))
    assert errors == []
    assert not any(name.startswith("Liabilities:Providers:Sim") for name, _ in balances(entries))


@pytest.mark.parametrize("single", [True, False])
def test_the_journal_of_the_month_has_it_to_the_cent(
    played: Process, clock: SetClock, *, single: bool
) -> None:
    settled(played)
    month, accounts = month_of(clock.now), read_account_file(DEFAULT.read_bytes())
    clock.forward(days=40)
    played.month_end.run()
    balance = month_balance(played.log, month)
    moves = [*moves_of(played.log, month, balance)]
    made = [*book(moves if single else daily(moves), balance, month, single=single)]
    posted = Counter[tuple[str, str]]()
    for each in made:
        posted[each.debit, each.move.currency] += each.cents
        posted[each.credit, each.move.currency] -= each.cents
    for opening, after in balance.lines:
        change = in_cents(after.micros) - in_cents(opening.micros)
        assert posted[after[:2]] == change, after
    its = accounts["datev"]
    batch = datev([*of_program(made, "USD", its)], its, clock.now).decode("cp1252").splitlines()
    rows = [line.split(";") for line in batch[2:]]
    paid = [row for row in rows if row[6:8] == ["1800", "1460"]]
    assert paid
    assert {row[1] for row in paid} == {'"S"'}, "the bank is debited"
    del its["accounts"]["Assets:Bank"]
    with pytest.raises(NotPossible, match="postings to Assets:Bank"):
        [*of_program(made, "USD", its)]


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
    ((_, its),) = reconcile_deposits(process.log, half).different
    assert its.reference == "INV-offline"
    parts = [*half, Theirs(2, "INV-offline", -600, "USD", DAY)]
    assert len(reconcile_deposits(process.log, parts).settled) == 1, "lines are added up"
    paid = reconcile_deposits(process.log, bill)
    assert booked(process, paid) == [True]
    with pytest.raises(NotPossible, match="so take back the payment first: INV-offline"):
        booked(process, found, back=True)
    assert booked(process, paid, back=True) == [True]
    assert booked(process, found, back=True) == [True]
    with pytest.raises(NotPossible, match="the invoice was taken back: INV-offline"):
        booked(process, paid)
    assert not [each for each in bank(process) if each.reference == "INV-offline"]
    assert held(process)["Liabilities:Providers:Offline", "USD"] == -1_000
    assert booked(process, invoiced(process, "offline", 1)) == [True]


def test_an_invoice_is_in_one_currency(process: Process) -> None:
    lines = [Theirs(at, of, 1, of, DAY) for at, of in enumerate(("usd", "EUR", "USD"))]
    for given, told in ((lines[1:], "EUR, USD"), ([], "none"), (lines[:1], "usd")):
        with pytest.raises(NotPossible, match=f"in one currency: here are {told}"):
            reconcile_costs(process.log, given, "offline", invoice="INV-1")


def test_an_invoice_is_booked_once_however_its_number_is_spelt(process: Process) -> None:
    process.look_up(process.organization("50.00"))
    assert booked(process, invoiced(process, "offline", 1)) == [True]
    lines = [Theirs(1, "a", 1, "USD", DAY)]
    for spelt in ("inv-offline", "INV OFFLINE", "INV-offline."):
        with pytest.raises(NotPossible, match="this invoice is booked as INV-offline"):
            reconcile_costs(process.log, lines, "offline", invoice=spelt)
    for provider, number in (("simulated", "inv-offline"), ("offline", "INV-offline-2")):
        found = reconcile_costs(process.log, lines, provider, invoice=number)
        assert booked(process, found) == [True], "of another provider, or another number"


def test_a_reference_of_two_organizations_is_booked_for_each(process: Process) -> None:
    for _ in range(2):
        owner = process.organization()
        process.accounts.move("deposit", owner, 7_000_000, "twin", process.cause())
    lines = [Theirs(1, "twin", 7_000_000, "USD", DAY)]
    unknown = reconcile_deposits(process.log, lines)
    assert not unknown.settled, "one is missing, and nobody knows which"
    found = reconcile_deposits(process.log, [*lines, Theirs(2, "twin", 7_000_000, "USD", DAY)])
    assert booked(process, found) == [True, True]
    assert held(process)["Assets:Bank", "USD"] == 14_000_000
