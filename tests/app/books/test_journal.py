"""Postings in cents: how they are rounded, for whom, and divided among files."""

import random
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from datetime import date
from pathlib import Path
from uuid import UUID

import pytest

from app.books.journal import (
    CENT,
    DEFAULT,
    EACH,
    TIME_ZONES,
    Booked,
    Move,
    book,
    code_of,
    daily,
    in_cents,
    moves_of,
    of_program,
    parts,
)
from app.books.postings import WALLETS
from app.books.statements import statements_of
from app.books.trial_balance import month_balance
from app.cli.import_files import read_account_file
from domain.accounts.organization import Organization
from domain.months import months_before
from tests.installation import Installation, Process, SetClock
from tests.projections.a_year import Year
from tests.seeds import sqlite_seed
from tests.workers.fees import clock_at, moment

BERLIN, AHEAD, BEHIND = "Europe/Berlin", "Pacific/Kiritimati", "Pacific/Pago_Pago"

ZONES = (TIME_ZONES / "zones").read_text().split()
clock = clock_at("2026-01-20")


@pytest.fixture
def process(tmp_path: Path, clock: SetClock) -> Iterator[Process]:
    with closing(Installation(tmp_path, like=sqlite_seed())) as made:
        yield made.process(clock)


def single(process: Process, month: str, zone: str = "UTC") -> list[Booked]:
    log = process.log
    balance = month_balance(log, month)
    moves = moves_of(log, month, balance, time_zone=zone)
    return [*book(moves, balance, month, single=True)]


def cents(booked: list[Booked]) -> dict[tuple[UUID | None, str], int]:
    """Return what the postings of each organization (None: of all) debit each account with."""
    found = Counter[tuple[UUID | None, str]]()
    for each in booked:
        found[each.move.organization_id, each.debit] += each.cents
        found[each.move.organization_id, each.credit] -= each.cents
    return found


def test_two_customers_at_half_a_cent_each_have_their_own(
    process: Process, clock: SetClock
) -> None:
    owners = [process.organization("1.00") for _ in range(2)]
    clock.forward(days=20)
    process.month_end.run()
    for _ in range(15):
        for owner in owners:
            process.look_up(owner)
    clock.forward(days=20)
    process.month_end.run()
    found = cents(single(process, "2026-02"))
    for owner in owners:  # 0.075 of 0.925 in the wallet, which was 1.00.
        assert found[owner, "Income:Lookup"] == -8
        assert found[owner, WALLETS] == 7
        assert found[owner, "Rounding"] == 1
    assert found[None, "Income:Lookup"] == 1  # Of 0.15 in all.
    assert found[None, WALLETS] == 1


@pytest.mark.parametrize("seed", range(4))
def test_the_postings_of_each_organization_add_up_to_its_statement_within_a_cent(
    process: Process, clock: SetClock, seed: int
) -> None:
    year = Year(process, clock, seed, wallets=4)
    for _ in range(160):
        year.trade(3.0)
    months = [f"2026-{month:02}" for month in range(1, 9)]
    for month in months:
        booked = single(process, month, random.Random(f"{seed} {month}").choice(ZONES))
        posted = cents(booked)
        assert posted == cents(single(process, month)), "only days are others in another zone"
        assert {f"{each.move.day:%Y-%m}" for each in booked} <= {month}, "none is of a closed one"
        assert len({each.number for each in booked if each.move.organization_id}) == sum(
            1 for each in booked if each.move.organization_id
        )
        for each in statements_of(process.log, month).statements:
            moved = each.closing_micros - each.opening_micros
            assert abs(-posted[each.organization_id, WALLETS] * CENT - moved) <= CENT
            lines = {
                kind: line.credit_micros - line.debit_micros for kind, line in each.lines.items()
            }
            deposits = -posted[each.organization_id, "Assets:Deposits"]
            paid_in = sum(lines.get(each, 0) for each in ("deposit", "reversal", "payout"))
            assert abs(deposits * CENT + paid_in) <= CENT
            claims = -posted[each.organization_id, "Assets:Claims"]
            assert abs(claims * CENT + lines.get("claim", 0)) <= CENT
        for opening, after in month_balance(process.log, month).lines:
            its = sum(n for (_, account), n in posted.items() if account == after.account)
            assert its == in_cents(after.micros) - in_cents(opening.micros)


DAYS = [  # In the order of time: a moment, a zone, and the day of the books.
    ("2026-02-01 03:00", "America/New_York", "2026-02-01"),  # There it is still January.
    ("2026-02-10 09:59", AHEAD, "2026-02-10"),
    ("2026-02-10 10:00", AHEAD, "2026-02-11"),
    ("2026-02-10 10:59", BEHIND, "2026-02-09"),
    ("2026-02-10 11:00", BEHIND, "2026-02-10"),
    ("2026-02-10 18:15", "Asia/Kathmandu", "2026-02-11"),
    ("2026-02-10 23:30", "UTC", "2026-02-10"),
    ("2026-03-28 22:30", BERLIN, "2026-03-28"),
    ("2026-03-28 23:00", BERLIN, "2026-03-29"),  # A day of 23 hours.
    ("2026-03-29 21:59", BERLIN, "2026-03-29"),
    ("2026-03-29 22:00", BERLIN, "2026-03-30"),
    ("2026-03-31 23:30", BERLIN, "2026-03-31"),  # There it is April.
    ("2026-10-24 22:00", BERLIN, "2026-10-25"),  # A day of 25 hours.
    ("2026-10-25 22:59", BERLIN, "2026-10-25"),
    ("2026-10-25 23:00", BERLIN, "2026-10-26"),
    ("2028-02-28 23:00", BERLIN, "2028-02-29"),
    ("2028-02-29 23:00", BERLIN, "2028-02-29"),
]


def test_a_day_is_that_of_the_zone_and_never_of_another_month(
    process: Process, clock: SetClock
) -> None:
    owner = process.organization("1.00")
    for number, (at, _, _) in enumerate(DAYS):
        clock.now = moment(at)
        process.accounts.move("deposit", owner, 10_000 + number, at, process.cause())
    for number, (at, zone, day) in enumerate(DAYS):
        balance = month_balance(process.log, at[:7])
        moves = moves_of(process.log, at[:7], balance, time_zone=zone)
        assert [str(it.day) for it in moves if it.micros == 10_000 + number] == [day], (at, zone)


NUMBERED = ("10001", "10002", "10001", None)


@pytest.mark.parametrize("mode", ["daily", "single"])
@pytest.mark.parametrize("seed", range(2))
def test_the_account_of_each_customer_ends_at_its_balance_rounded_once(
    process: Process, clock: SetClock, seed: int, mode: str
) -> None:
    """Two organizations of one customer have one account, and one without a number has none."""
    year, log, cause = Year(process, clock, seed, wallets=4), process.log, process.cause()
    numbered: list[Organization] = []
    for number in range(100):
        year.trade(3.0)
        if len(year.organizations) == len(NUMBERED) and not numbered:
            numbered = [Organization.register(it, cause, name="Acme") for it in year.organizations]
            for its, named in zip(numbered, NUMBERED, strict=True):
                its.set_customer_number(named, cause)
            log.append(*numbered)
        if number == 60:  # One of them gets another number.
            its = log.get(Organization, year.organizations[1])
            log.update(its, lambda its: its.set_customer_number("10003", cause))
    accounts = {"accounts": {"Liabilities:Wallets": "3250", EACH: "*"}, "account_length": 4}
    january = month_balance(log, "2026-01")
    held = Counter(
        {"3250": sum(in_cents(it.micros) for it, _ in january.lines if it.account == WALLETS)}
    )
    for month in months_before("2026-01", "2026-06"):
        balance = month_balance(log, month)._replace(by_customer=True)
        zone, customers = (AHEAD, BEHIND)[seed], balance.closing.numbers
        moves = [*moves_of(log, month, balance, time_zone=zone)]
        its = moves if mode == "single" else daily(moves)
        booked = book(its, balance, month, single=mode == "single")
        for each in booked:
            for account, cents in ((each.debit, each.cents), (each.credit, -each.cents)):
                if account.startswith(WALLETS):
                    held[code_of(accounts, account)] += cents
        exact = Counter[str]()
        for each in statements_of(log, month).statements:
            exact[customers.get(each.organization_id) or "3250"] -= each.closing_micros
        rounded = {name: its for name, micros in exact.items() if (its := in_cents(micros))}
        assert {name: cents for name, cents in held.items() if cents} == rounded


def test_half_a_cent_is_rounded_away_from_zero() -> None:
    cents = {0: 0, 4_999: 0, 5_000: 1, -4_999: 0, -5_000: -1, 14_999: 1, 1_234_567: 123}
    assert {micros: in_cents(micros) for micros in cents} == cents


MOVE = Move(date(2026, 2, 1), "a", "b", "USD", 10_000, "")


def journals(*lengths: int) -> list[Booked]:
    """Return postings, so many of each journal."""
    return [
        Booked(str(number), "a", "b", 1, MOVE)
        for number, length in enumerate(lengths)
        for _ in range(length)
    ]


@pytest.mark.parametrize(
    ("lengths", "files"),
    [((), []), ((3,), [3]), ((2, 2, 2), [4, 2]), ((1, 4, 1), [1, 4, 1]), ((9, 1), [9, 1])],
)
def test_a_journal_is_whole_in_one_file(lengths: tuple[int, ...], files: list[int]) -> None:
    every = journals(*lengths)
    divided = [*parts(every, 4)]
    assert [len(each) for each in divided] == files
    assert [each for part in divided for each in part] == every


def test_what_a_program_has_under_one_account_is_not_posted_to_itself() -> None:
    its = [
        Booked("1", "Rounding", each, 1, MOVE) for each in ("Expenses:Adjustments", "Income:Lookup")
    ]
    own = read_account_file(DEFAULT.read_bytes())["xero"]
    one = {"accounts": {**own["accounts"], "Rounding": own["accounts"]["Expenses:Adjustments"]}}
    assert [*of_program(its, "USD", own)] == its
    assert [*of_program(its, "USD", one)] == its[1:]
