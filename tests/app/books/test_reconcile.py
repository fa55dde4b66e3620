"""A reconciliation finds what is missing on either side, and what differs."""

import random
from datetime import UTC, datetime
from typing import cast
from uuid import UUID

import pytest
from msgspec.structs import replace

from app.books.reconcile import (
    FileRefused,
    Ours,
    Period,
    Theirs,
    by_period,
    costs_of,
    deposits_of,
    reconcile,
    reconcile_deposits,
)
from domain.cost import Cost
from tests.installation import Installation, Process, SetClock
from tests.projections.link_steps import LinkSteps, bought

MARCH = datetime(2026, 3, 31, 23, tzinfo=UTC)
APRIL = datetime(2026, 4, 1, tzinfo=UTC)


def ours(reference: str, micros: int | None = 1, currency: str | None = "USD") -> Ours:
    return Ours(1, MARCH, reference, micros, currency)


def theirs(reference: str, micros: int = 1, line: int = 2, currency: str = "USD") -> Theirs:
    return Theirs(line, reference, micros, currency)


def test_each_kind_of_difference_is_found() -> None:
    here = [ours("less", 2), ours("here"), ours("currency", 1, "EUR"), ours("cost", None, None)]
    there = [theirs(name) for name in ("less", "there", "currency", "cost", "")]
    found = reconcile(there, here)
    assert (found.ok, found.matched) == (False, 0)
    assert [each.reference for each in found.missing_here] == ["there", ""]
    assert [each.reference for each in found.missing_there] == ["here"]
    assert [each.reference for each, _ in found.different] == ["less", "currency", "cost"]


def test_lines_of_one_reference_are_added_up() -> None:
    found = reconcile([theirs("a", 5), theirs("a", -2, line=3)], [ours("a", 1), ours("a", 2)])
    assert (found.ok, found.matched) == (True, 1)
    parts = [Ours(1, MARCH, "a", 1, "USD", UUID(int=each)) for each in (1, 1, 2)]
    for count, whose in ((2, UUID(int=1)), (3, None)):
        assert reconcile([], parts[:count]).missing_there[0].organization_id == whose
    with pytest.raises(FileRefused) as refused:
        reconcile([theirs("a"), theirs("a", line=3, currency="EUR")], [])
    assert refused.value.lines == ["line 3: line 2 has this reference in USD"]


def test_only_what_is_of_the_month_is_missed_there() -> None:
    late = Ours(2, APRIL, "late", 1, "USD")
    assert reconcile([], [ours("a"), late]).missing_there == [ours("a"), late]
    assert reconcile([], [ours("a"), late], "2026-04").missing_there == [late]
    assert reconcile([theirs("a")], [ours("a"), late], "2026-05").ok, "billed later"


@pytest.mark.parametrize("seed", range(20))
def test_every_reference_is_told_once(seed: int) -> None:
    dice = random.Random(seed)
    here = [ours(str(dice.randrange(30)), dice.randrange(3)) for _ in range(30)]
    there = [theirs(str(dice.randrange(30)), dice.randrange(3)) for _ in range(30)]
    found = reconcile(there, here)
    told = [each.reference for each in (*found.missing_here, *found.missing_there)]
    told += [each.reference for each, _ in found.different]
    assert len(told) == len(set(told))
    assert len(told) + found.matched == len({each.reference for each in (*here, *there)})


def test_activations_and_top_ups_have_the_references_of_their_network(process: Process) -> None:
    acme = process.organization()
    process.look_up(acme)
    plan = replace(bought(), cost=Cost(1_500_000, "EUR"))
    far = replace(plan, network="far")
    life = LinkSteps(process, acme, plan=plan).activate()
    life.change(add=[plan, bought()]).do_all()
    LinkSteps(process, acme, plan=far).activate(addon_id=None)
    added = [*life.link.activations.values()][1:]
    assert [(e.reference, e.amount_micros) for e in costs_of(process.log, "simulated")] == [
        ("addon-1", 1_500_000),
        (added[0].addon_id, 1_500_000),
        (added[1].addon_id, None),
    ]
    assert [each.reference.split("-")[0] for each in costs_of(process.log, "far")] == ["endpoint"]
    assert [*costs_of(process.log, "offline")] == []
    facts = [(e.reference, e.amount_micros, e.organization_id) for e in deposits_of(process.log)]
    assert facts == [("bank-1", 100_000_000, acme)]


@pytest.mark.each_database
def test_what_has_no_reference_is_added_up_by_day_or_month(installation: Installation) -> None:
    clock = SetClock(datetime(2026, 3, 30, 23, 59, tzinfo=UTC))
    installation.environment["COST_PER_LOOKUP"] = "offline=0.005 USD"
    process = installation.process(clock)
    acme = process.organization()
    process.look_up(acme)
    process.look_up(acme, "+14155550101")
    clock.forward(minutes=2)
    process.finish_job(process.create_job(acme, ["+14155550102", "+14155550103"]))
    clock.forward(days=1)
    process.look_up(acme, "+14155550104")
    for period, lines in (
        ("day", {"2026-03-30": 10_000, "2026-03-31": 10_000, "2026-04-01T08:00:00Z": 5_000}),
        ("month", {"20260301": 20_000, "2026-04-01": 5_000}),
    ):
        here = [*costs_of(process.log, "offline", cast("Period", period))]
        unused = theirs("2026-02-01", 0)
        there = [unused, *(theirs(name, micros) for name, micros in lines.items())]
        found = reconcile(by_period(there, cast("Period", period)), here)
        assert (found.ok, found.matched) == (True, len(lines))
        less = reconcile(by_period(there[:-1], cast("Period", period)), here)
        (each,) = less.missing_there
        assert each.reference == "2026-04-01"[: len(here[0].reference)]
    assert [*costs_of(process.log, "far", "day")] == []
    installation.environment["COST_PER_LOOKUP"] = "offline=0"
    installation.process(clock).look_up(acme, "+14155550105")
    assert [*costs_of(process.log, "offline", "month")] == here, "what is free is on no invoice"


def test_a_reference_that_is_no_date_is_told() -> None:
    with pytest.raises(FileRefused) as refused:
        by_period([theirs("2026-03-01"), theirs("INV-1", line=3), theirs("", line=4)], "day")
    assert [each.split(":")[0] for each in refused.value.lines] == ["line 3", "line 4"]


def test_the_text_of_a_bank_names_what_it_is_for(process: Process) -> None:
    acme = process.organization("50.00")
    facts = {"reason": "why", "value_date": MARCH.date()}
    move, cause = process.accounts.move, process.cause()
    for reference, micros in (("bank-1-b", 7_000_000), ("2026", 9_000_000), ("Ä 4/5", 4_000_000)):
        process.accounts.move("deposit", acme, micros, reference, cause)
    move("payout", acme, 20_000_000, "out-1", cause, **facts)
    move("reversal", acme, None, "back-1", cause, deposit="bank-1", **facts)
    texts = {
        "SEPA 2026/03 EREF+BANK-1+KREF+NOTPROVIDED": 50_000_000,
        "from Acme: bank 1 b": 7_000_000,
        "2026": 9_000_000,
        "ref. ä-4-5, thanks": 4_000_000,
        "Your payment out-1 2026": -20_000_000,
        "RETURN of bank-1": -50_000_000,
        "rent 2025": -7,
    }
    lines = [theirs(text, micros, n) for n, (text, micros) in enumerate(texts.items())]
    found = reconcile_deposits(process.log, lines)
    assert (found.ok, found.matched) == (True, 6)
    assert not reconcile_deposits(process.log, lines[:5]).ok, "of the reversal nothing is there"
    for text, micros in (("bank-1 and bank-1-b", 1), ("bank-12", 50_000_000), ("bank-", 1)):
        unknown = reconcile_deposits(process.log, [*lines[1:], theirs(text, micros, 9)])
        assert not unknown.ok, text
    process.accounts.move("deposit", acme, 50_000_000, "other", cause)
    either = reconcile_deposits(process.log, [theirs("bank-1, other", 50_000_000), *lines[1:]])
    assert [each.reference for each in either.missing_here] == ["bank-1, other"], "it may be both"
