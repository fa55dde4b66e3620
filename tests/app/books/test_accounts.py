"""Margin and trial balance: every way to add the log up gives the same money."""

from datetime import timedelta
from typing import get_args

import pytest

from app.books.margin import By, Earned, margin_of
from app.books.reconcile import deposits_of
from app.books.statements import statements_of
from app.books.trial_balance import TrialBalance, month_balance, trial_balance
from domain.accounts.wallet import BOOKED, SANDBOX_DEPOSIT
from domain.finance.statement import Month
from domain.months import first_instant, months_before
from tests.installation import CountingProvider, Installation, Process, SetClock, numbers
from tests.projections.a_year import Year
from tests.projections.histories import Life
from tests.projections.link_steps import LinkSteps
from tests.workers.fees import moment

REFUNDS = "Income:Refunds"
EVERY: tuple[By, ...] = get_args(By)


def sums(balance: TrialBalance) -> dict[tuple[str, str], int]:
    return {(line.account, line.currency): line.micros for line in balance.lines}


def test_what_is_not_known_to_cost_anything_is_counted(process: Process) -> None:
    acme = process.organization()
    process.look_up(acme)
    process.finish_job(process.create_job(acme, numbers(2)))
    LinkSteps(process, acme).activate()
    for by in EVERY:
        assert margin_of(process.log, by).total.unknown == 4
    assert trial_balance(process.log).unknown == 4


def test_an_answer_of_the_cache_is_no_work_of_the_provider(installation: Installation) -> None:
    process = installation.process(provider=CountingProvider(remote=True))
    acme = process.organization()
    for _ in range(2):
        process.look_up(acme)
    assert margin_of(process.log, "provider").rows == {"counting": Earned(10_000, unknown=1)}


@pytest.mark.parametrize("seed", [31, 32])
def test_however_a_history_is_added_up_it_gives_the_same(process: Process, seed: int) -> None:
    life = Life(process, seed)
    life.go_on(60)
    life.finish()
    totals = [margin_of(process.log, by).total for by in EVERY]
    assert all(total == totals[0] for total in totals)
    accounts = sums(trial_balance(process.log))
    income = sum(
        micros
        for (name, _), micros in accounts.items()
        if name.startswith("Income") and not name.startswith(REFUNDS)
    )
    assert (totals[0].revenue_micros, bool(income)) == (-income, True)
    for position in range(0, process.log.head() + 1, 7):
        assert not any(trial_balance(process.log, position).differences.values())


def test_what_months_have_earned_is_what_their_statements_say(installation: Installation) -> None:
    clock = SetClock(moment("2026-01-20"))
    process = installation.process(clock)
    year = Year(process, clock, 7)
    while clock.now < moment("2026-09-10"):
        year.trade()
    rows = margin_of(process.log, "month").rows
    assert len(rows) > 6
    for month, row in rows.items():
        statements = statements_of(process.log, str(month)).statements
        lines = [line for each in statements for line in each.lines.items()]
        assert row.refunds_micros == sum(it.credit_micros for kind, it in lines if kind == "refund")
        charged = sum(it.debit_micros for kind, it in lines if kind not in BOOKED)
        assert row.revenue_micros == charged
        for by in EVERY:
            assert margin_of(process.log, by, month=month).total == row
    for by in EVERY:
        assert margin_of(process.log, by).total == margin_of(process.log, "month").total
    assert trial_balance(process.log).differences == {"USD": 0}


def test_a_closed_month_ties_to_its_statements(installation: Installation) -> None:
    installation.environment["COST_PER_LOOKUP"] = "offline=0.001"
    clock = SetClock(moment("2026-01-20"))
    process = installation.process(clock)
    year = Year(process, clock, 11)
    while clock.now < moment("2026-05-10"):
        year.trade()
    acme = process.organization("1.00")
    process.log.append(Month.close("2026-05", process.cause()))
    process.look_up(acme)  # A late entry behind the close: it is of June.
    before: dict[tuple[str, str], int] = {}
    for month in months_before("2025-12", "2026-07"):
        found = month_balance(process.log, month)
        books = statements_of(process.log, month)
        moved = {line.account: line.micros - before.micros for before, line in found.lines}
        closing = {line[:2]: line.micros for _, line in found.lines}
        assert found.is_final is (books.closed_at is not None)
        assert not any(found.closing.differences.values())
        opening = {line[:2]: line.micros for line, _ in found.lines}
        assert {key: micros for key, micros in opening.items() if key in before} == before
        assert closing.get(("Liabilities:Wallets", "USD"), 0) == -sum(
            each.closing_micros for each in books.statements
        )
        lines = [line for each in books.statements for line in each.lines.items()]
        for kind in {*(kind for kind, _ in lines)} - {"refund", *BOOKED}:
            charged = sum(line.debit_micros for its, line in lines if its == kind)
            assert moved[f"Income:{kind.replace('_', '-').capitalize()}"] == -charged
        refunds = sum(micros for name, micros in moved.items() if name.startswith(REFUNDS))
        assert refunds == sum(line.credit_micros for its, line in lines if its == "refund")
        before = closing
    assert before == sums(trial_balance(process.log))
    may = sums(trial_balance(process.log, first_instant("2026-06")))
    june = {line[:2]: line.micros for line, _ in found.lines}
    assert may["Liabilities:Wallets", "USD"] == june["Liabilities:Wallets", "USD"] + 5_000
    assert margin_of(process.log, "month").rows["2026-06"].cost_micros("USD") == 1_000


def test_accounts_are_as_they_were_at_a_moment(installation: Installation) -> None:
    clock = SetClock()
    process, noon = installation.process(clock), clock.now
    acme = process.organization("1.00")
    clock.forward(hours=1)
    process.look_up(acme)
    clock.now -= timedelta(hours=2)
    process.look_up(acme)  # Dated before the one ahead of it.
    then = trial_balance(process.log, noon)
    assert then.unknown == 1, "what the provider did in the second lookup"
    assert sums(then) == {
        ("Assets:Deposits", "USD"): 1_000_000,
        ("Liabilities:Wallets", "USD"): -1_000_000,
    }
    later = sums(trial_balance(process.log, noon + timedelta(hours=1)))
    assert later["Liabilities:Wallets", "USD"] == -990_000


def test_play_money_has_an_account_of_its_own_and_no_bank_knows_of_it(process: Process) -> None:
    acme = process.organization("1.00")
    given = (acme, 2_000_000, "tests-1", process.cause())
    _, first = process.accounts.book_deposit(*given, SANDBOX_DEPOSIT)
    _, again = process.accounts.book_deposit(*given, SANDBOX_DEPOSIT)
    _, paid = process.accounts.book_deposit(*given)
    assert (first, again, paid) == (True, False, True), "the same reference names two deposits"
    assert sums(trial_balance(process.log)) == {
        ("Assets:Deposits", "USD"): 3_000_000,
        ("Assets:Sandbox-deposits", "USD"): 2_000_000,
        ("Liabilities:Wallets", "USD"): -5_000_000,
    }
    assert sum(each.amount_micros or 0 for each in deposits_of(process.log)) == 3_000_000
