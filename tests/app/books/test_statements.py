"""A year of statements: each from the log as from the read model, and each month on the last."""

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from uuid import UUID, uuid4

import pytest

from app.books.statements import balance_of, statements_of
from domain.accounts.wallet import BOOKED, CHARGED_FOR
from domain.finance.statement import Month, Statement
from domain.money import parse_amount
from domain.months import first_instant, month_of, months_before, next_month
from projections.engine.reader import read_events
from projections.engine.verify import differences
from projections.models.transactions import REPLAYED, Replayed, replayed
from projections.models.usage import Dimension
from tests.installation import Installation, Process, SetClock
from tests.projections.a_year import Year
from tests.workers.fees import moment

Found = dict[tuple[UUID, str], Statement]


class Books:
    """What a year has left in the log, and what each closed month said when it was closed."""

    def __init__(self, process: Process, seed: int) -> None:
        self.process = process
        self.clock = SetClock(moment("2026-01-20"))
        process.clock = process.shared_clock = self.clock
        process.monotonic = lambda: self.clock().timestamp()
        process.started = self.clock(), process.monotonic()
        self.year = Year(process, self.clock, seed)
        self.when_closed: Found = {}
        while self.clock.now < moment("2027-02-10"):
            self.year.trade()
            for month in months_before("2026-01", month_of(self.clock.now)):
                if (self.year.organizations[0], month) not in self.when_closed:
                    self.when_closed |= self.from_log(month, is_final=True)
        process.projector.catch_up()

    def from_log(self, month: str, *, is_final: bool | None = None) -> Found:
        found = statements_of(self.process.log, month)
        if is_final is not None and (found.closed_at is not None) is not is_final:
            return {}
        return {(each.organization_id, month): each for each in found.statements}

    def from_read_model(self) -> Found:
        found: Found = {}
        with self.process.views.reading() as connection:
            for owner in self.year.organizations:
                statements, closed = self.process.statements.all_of(connection, owner)
                assert closed == "2027-01"
                found |= {(owner, each.month): each for each in statements}
        return found

    def entries(self) -> list[Replayed]:
        return [*replayed(read_events(self.process.log, REPLAYED))]


@pytest.fixture(scope="module", params=range(2))
def books(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, migrated: Path
) -> Iterator[Books]:
    installation = Installation(tmp_path_factory.mktemp("year"), like=migrated)
    yield Books(installation.process(), request.param)
    installation.close()


def test_each_month_begins_with_what_the_one_before_it_ended_with(books: Books) -> None:
    found = books.from_read_model()
    for owner in books.year.organizations:
        mine = [each for (whose, _), each in found.items() if whose == owner]
        assert [each.month for each in mine] == [*months_before(mine[0].month, "2027-03")]
        for earlier, later in pairwise(mine):
            assert later.opening_micros == earlier.closing_micros
        starts = [each.first("sequence") for each in mine if each.lines]
        ends = [each.last("sequence") or 0 for each in mine if each.lines]
        assert starts == [1, *(each + 1 for each in ends[:-1])]


def test_the_log_alone_and_the_read_model_say_the_same(books: Books) -> None:
    found = books.from_read_model()
    months = {month for _, month in found}
    alone: Found = {}
    for month in months:
        alone |= books.from_log(month)
    assert alone == found
    assert books.from_log("2027-03") == books.from_log("2025-10") == {}
    process = books.process
    assert not differences(process.source, process.statements)


def test_the_cut_off_is_the_rule_word_by_word(books: Books) -> None:
    """Computed anew from the entries and the closes, as somebody would who reads the rule."""
    log = read_events(books.process.log, (Month.Closed,))
    closes = [(at, event.month) for at, event in log if isinstance(event, Month.Closed)]
    assert [month for _, month in closes] == [*months_before("2026-01", "2027-02")]
    previous: dict[UUID, str] = {}
    months: list[tuple[Replayed, str]] = []
    expected: dict[tuple[UUID, str], list[int]] = {}
    for entry in books.entries():
        before = [month for position, month in closes if position < entry.entry.position]
        candidates = [month_of(entry.at), previous.get(entry.organization_id, "")]
        candidates += [next_month(before[-1])] if before else []
        month = previous[entry.organization_id] = max(candidates)
        months.append((entry, month))
        expected.setdefault((entry.organization_id, month), []).append(entry.entry.sequence)
    assert any(month_of(entry.at) < month for entry, month in months)
    found = {key: each for key, each in books.from_read_model().items() if each.lines}
    places = {key: (each.first("sequence"), each.last("sequence")) for key, each in found.items()}
    assert places == {key: (its[0], its[-1]) for key, its in expected.items()}


def test_a_closed_month_says_for_ever_what_it_said_when_it_was_closed(books: Books) -> None:
    found = books.from_read_model()
    assert len(books.when_closed) >= 30
    for key, then in books.when_closed.items():
        assert found[key] == then


@pytest.mark.parametrize("group_by", [["day"], ["month", "kind"], ["plan"], ["plan", "day"]])
def test_usage_is_the_sum_of_the_entries(books: Books, group_by: list[Dimension]) -> None:
    days = sorted({each.at.date() for each in books.entries() if each.entry.kind == "lookup"})
    process, since, until = books.process, days[1], days[-2]
    for owner in books.year.organizations:
        expected: dict[tuple[str, ...], list[int]] = {}
        for owner_id, at, entry, _ in books.entries():
            day = at.date()
            is_own = owner_id == owner and entry.kind not in BOOKED
            if not is_own or not since <= day < until:
                continue
            facts = {
                "day": day.isoformat(),
                "month": day.isoformat()[:7],
                "kind": CHARGED_FOR[entry.reference.type] if entry.refund_of else entry.kind,
                "plan": entry.metadata.get("plan_id", ""),
            }
            sums = expected.setdefault(tuple(facts[each] for each in group_by), [0, 0, 0, 0])
            place = 2 if entry.refund_of else 0
            sums[place] += 1
            sums[place + 1] += parse_amount(entry.amount)
        rows = process.read(process.usage.grouped, owner, group_by, (since, until), 1_000)
        told = {
            tuple((row.plan_id or "") if e == "plan" else getattr(row, e) for e in group_by): row
            for row in rows
        }
        assert [*told] == sorted(expected)
        for key, row in told.items():
            sums = [row.charges, row.charged_micros, row.refunds, row.refunded_micros]
            assert sums == expected[key]
            assert (row.plan_name is None) == (row.plan_id is None)
    assert not differences(process.source, process.usage)


def test_the_balance_at_any_point_is_that_of_the_last_entry_by_then(books: Books) -> None:
    entries, log = books.entries(), books.process.log
    for owner in books.year.organizations:
        own = [each for each in entries if each.organization_id == owner]
        mine = [each.entry for each in own]
        now = balance_of(log, owner)
        assert now is not None
        assert (now.balance, now.position) == (mine[-1].balance_after, mine[-1].position)
        for each in mine[::7]:
            then = balance_of(log, owner, each.position)
            assert then is not None
            assert then.balance == each.balance_after
        end = first_instant("2026-07")
        counted = [each for at, each in enumerate(mine, 1) if max(e.at for e in own[:at]) <= end]
        then = balance_of(log, owner, end)
        assert (then is None) == (not counted)
        assert then is None or then.balance == counted[-1].balance_after
    assert balance_of(log, uuid4()) is None
    assert balance_of(log, books.year.organizations[0], 0) is None
