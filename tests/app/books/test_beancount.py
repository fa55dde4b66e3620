"""The real Beancount accepts a year of trade, and its balances are ours to the micro-unit."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from beancount import loader
from beancount.core import data, realization

from app.books.beancount import ledger_lines
from app.books.postings import WALLETS
from app.books.reader import Selection
from app.books.statements import statements_of
from app.books.trial_balance import trial_balance
from domain.log.log import Log
from domain.money import MICROS
from projections.engine.rebuild import ignore_progress
from tests.installation import Installation, Process, SetClock, numbers
from tests.projections.a_year import Year
from tests.projections.link_steps import LinkSteps, bought
from tests.seeds import sqlite_seed
from tests.workers.fees import moment

Balances = dict[tuple[str, str], int]


def ledger_of(log: Log, **selected: Any) -> str:
    return b"".join(ledger_lines(log, Selection(**selected), ignore_progress)).decode()


def loaded(text: str) -> tuple[list[Any], list[str]]:
    """Return the entries of a ledger, and what `bean-check` would complain of."""
    entries, errors, _ = loader.load_string(text)
    return entries, [each.message for each in errors]


def balances(entries: list[Any]) -> Balances:
    """Return what Beancount says that each account holds, in micro-units."""
    found: Balances = {}
    for account in realization.iter_children(realization.realize(entries)):
        for position in account.balance:
            micros = position.units.number * MICROS
            assert micros == int(micros)
            found[account.account, position.units.currency] = int(micros)
    return {key: micros for key, micros in found.items() if micros}


def ours(process: Process) -> Balances:
    """Return what the trial balance says, and the wallets that it sums up."""
    lines = trial_balance(process.log).lines
    found = {(it.account, it.currency): it.micros for it in lines if it.account != WALLETS}
    with process.views.reading() as connection:
        for row in connection.execute(process.wallets.rows.select()).mappings():
            account = f"{WALLETS}:{str(row['organization_id']).upper()}"
            found[account, row["currency"]] = -row["balance_micros"]
    return {key: micros for key, micros in found.items() if micros}


def trade(process: Process, clock: SetClock, steps: int, wallets: int) -> Year:
    """A year in some wallets, and links, lookups and a job that cost something."""
    acme = process.organization("1000.00", 'Acme "Überall"\\')
    process.accounts.move("adjustment", acme, -1, "c-1", process.cause(), reason='a "mistake" \\')
    process.look_up(acme)
    process.finish_job(process.create_job(acme, [*numbers(2), "+15005550001"]))
    LinkSteps(process, acme, plan=bought("Europe", "4.00")).activate()
    year = Year(process, clock, 7, wallets)
    for _ in range(steps):
        year.trade(390 / steps * 2)
    process.projector.catch_up()
    return year


@pytest.fixture(scope="module")
def process(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Process]:
    home = tmp_path_factory.mktemp("trade")
    environment = {"COST_PER_LOOKUP": "offline=0.001"}
    with closing(Installation(home, like=sqlite_seed(), **environment)) as made:
        clock = SetClock(moment("2026-01-20"))
        process = made.process(clock)
        trade(process, clock, 150, 4)
        yield process


def test_beancount_accepts_a_year_of_trade_and_has_our_balances(
    process: Process, tmp_path: Path
) -> None:
    text = ledger_of(process.log)
    (tmp_path / "books.beancount").write_text(text)
    program = Path(sys.executable).with_name("bean-check")
    subprocess.run([program, tmp_path / "books.beancount"], check=True)
    entries, errors = loaded(text)
    assert errors == []
    assert balances(entries) == ours(process)
    assert any(account.startswith("Expenses:Providers") for account, _ in balances(entries))


def test_each_months_end_is_asserted_as_the_statement_has_it(process: Process) -> None:
    entries, _ = loaded(ledger_of(process.log))
    asserted = {
        (each.account, f"{each.date:%Y-%m}"): each
        for each in entries
        if isinstance(each, data.Balance)
    }
    assert len(asserted) > 20
    for month, following in (("2026-06", "2026-07"), ("2026-12", "2027-01")):
        for each in statements_of(process.log, month).statements:
            if each.lines:
                account = f"{WALLETS}:{str(each.organization_id).upper()}"
                balance = asserted[account, following]
                assert balance.amount.number * MICROS == -each.closing_micros
                assert balance.tolerance == Decimal(0)


def test_a_part_is_a_ledger_that_begins_with_what_there_was(process: Process) -> None:
    head = process.log.head()
    with process.views.reading() as connection:
        owners = [row.organization_id for row in connection.execute(process.wallets.rows.select())]
    middle = datetime(2026, 7, 1, tzinfo=UTC)
    one = owners[1]
    for selected in (
        {"since": head // 2},
        {"until": head // 2},
        {"since": middle},
        {"since": middle, "until": datetime(2026, 9, 10, 12, tzinfo=UTC)},
        {"organization_id": one},
        {"organization_id": one, "since": middle},
    ):
        entries, errors = loaded(ledger_of(process.log, **selected))
        assert errors == [], selected
        if "until" not in selected:
            found, wanted = owned(balances(entries)), owned(ours(process))
            if "organization_id" in selected:
                wanted = {key: value for key, value in wanted.items() if str(one).upper() in key[0]}
                found = {key: value for key, value in found.items() if "Wallets" in key[0]}
            assert found == wanted, selected
    whole = ledger_of(process.log, organization_id=one)
    assert str(one).upper() in whole
    assert not [owner for owner in owners if owner != one and str(owner).upper() in whole]


def owned(found: Balances) -> Balances:
    """Return what is not of a period: income and expenses of before are left to equity."""
    return {key: value for key, value in found.items() if key[0][:7] in {"Assets:", "Liabili"}}


@pytest.mark.parametrize("since", [datetime(2030, 1, 1, tzinfo=UTC), 10**9])
def test_books_that_begin_later_have_one_opening_entry(
    process: Process, since: datetime | int
) -> None:
    """Also for wallets that never move again, and for costs of providers."""
    entries, errors = loaded(ledger_of(process.log, since=since))
    (opening,) = (each for each in entries if isinstance(each, data.Transaction))
    assert errors == []
    assert opening.narration == "Opening balances"
    assert opening.date >= date(2027, 1, 1)
    assert owned(balances(entries)) == owned(ours(process))


def test_words_of_people_stay_in_quotes_and_reports_are_in_our_currency(process: Process) -> None:
    entries, _, options = loader.load_string(ledger_of(process.log))
    assert options["operating_currency"] == ["USD"]
    names = [each.meta.get("name") for each in entries if isinstance(each, data.Open)]
    assert 'Acme "Überall"\\' in names
    assert 'a "mistake" \\' in {getattr(each, "narration", None) for each in entries}
