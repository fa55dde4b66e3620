"""What is in force (prices, fees, the end of a month) is judged by its position in the log."""

from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from uuid import UUID

import pytest

from domain.finance.statement import Month
from domain.links.link import Link
from domain.months import first_instant
from projections.audit.auditor import check_log
from tests.installation import Installation, Process, SetClock
from tests.projections.link_steps import LinkSteps, bought
from tests.seeds import sqlite_seed
from tests.workers.fees import bill


class Shop:
    """An installation with two organizations."""

    def __init__(self, process: Process, clock: SetClock) -> None:
        self.process, self.clock = process, clock
        self.own, self.other = process.organization("50.00"), process.organization("50.00")

    def fails(self) -> list[str]:
        self.process.projector.catch_up()
        return [each.reason for each in check_log(self.process.log).failures]

    def price(self, micros: int | None, of: UUID | None = None) -> None:
        """Set the price of all lookups, or of those of an organization."""
        if of is None:
            assert micros is not None
            self.process.prices.set(micros, self.process.cause())
        else:
            self.process.change(of, lambda it, cause: it.change_price(micros, cause))

    def look_up(self, micros: int, of: UUID) -> None:
        """Buy a lookup at a price, whatever is in force."""
        self.process.look_up(of, price_micros=micros)

    def later(self, **time: float) -> None:
        self.clock.forward(**time)

    def at(self, moment: datetime) -> None:
        self.clock.now = moment


@pytest.fixture
def shop(tmp_path: Path) -> Iterator[Shop]:
    clock = SetClock(datetime(2026, 3, 10, tzinfo=UTC))
    with closing(Installation(tmp_path, like=sqlite_seed())) as made:
        yield Shop(made.process(clock), clock)


def test_a_lookup_costs_the_price_in_force_of_its_organization_else_of_all(shop: Shop) -> None:
    shop.look_up(1_000, shop.own)  # No event says what is in force.
    shop.price(5_000)
    shop.price(7_000, shop.own)
    shop.later(hours=1)
    shop.look_up(7_000, shop.own)
    shop.look_up(5_000, shop.other)
    shop.price(None, shop.own)
    shop.price(0, shop.other)
    shop.later(hours=1)
    shop.look_up(5_000, shop.own)
    shop.look_up(0, shop.other)
    assert shop.fails() == []
    shop.look_up(7_000, shop.own)  # That of before; then that of another organization.
    shop.look_up(5_000, shop.other)
    assert shop.fails() == [
        "it costs 0.007 for each lookup, where 0.005 was in force",
        "it costs 0.005 for each lookup, where 0.00 was in force",
    ]


def test_a_job_costs_the_price_in_force(shop: Shop) -> None:
    shop.price(5_000)
    shop.later(hours=1)
    shop.process.create_job(shop.own, ["+14155550100", "+14155550101"])
    assert shop.fails() == []
    shop.price(6_000)
    shop.later(hours=1)
    shop.process.create_job(shop.own, ["+14155550102"])
    assert shop.fails() == ["it costs 0.005 for each lookup, where 0.006 was in force"]


def test_a_lookup_that_was_under_way_may_cost_what_was_in_force_before(shop: Shop) -> None:
    shop.price(5_000)
    shop.later(days=1)
    shop.price(6_000)
    shop.later(seconds=20)
    shop.look_up(5_000, shop.own)
    shop.clock.forward(seconds=-40)  # The clock of another process.
    shop.look_up(6_000, shop.own)
    shop.look_up(5_000, shop.own)
    assert shop.fails() == []
    shop.later(minutes=10)
    shop.look_up(5_000, shop.own)
    assert len(shop.fails()) == 1


def close(shop: Shop, month: str, at: datetime | None = None) -> None:
    now, shop.clock.now = shop.clock.now, at or shop.clock.now
    shop.process.log.append(Month.close(month, shop.process.cause()))
    shop.clock.now = now


APRIL = first_instant("2026-04")


@pytest.mark.parametrize(("minutes", "count"), [(-4, 0), (-59, 0), (-61, 1), (-9_000, 1)])
def test_what_is_behind_a_close_and_an_hour_older_contradicts_it(
    shop: Shop, minutes: int, count: int
) -> None:
    close(shop, "2026-03", APRIL + timedelta(minutes=5))
    shop.at(APRIL + timedelta(minutes=5 + minutes))
    shop.look_up(1_000, shop.own)
    found = f"it is dated {shop.clock.now:%Y-%m-%dT%H:%M:%S}, so month 2026-03 was closed before"
    assert shop.fails() == [f"{found} its end"] * count


def test_a_month_closed_by_a_clock_that_was_ahead_is_found_once(shop: Shop) -> None:
    close(shop, "2026-03", APRIL + timedelta(days=3))
    for _ in range(3):
        shop.later(days=1)
        shop.process.organization("1.00")  # Not only what moves money.
    assert len(shop.fails()) == 1


def test_a_clock_that_is_set_back_later_contradicts_nothing(shop: Shop) -> None:
    close(shop, "2026-03", APRIL + timedelta(days=20))
    shop.at(APRIL + timedelta(days=2))
    shop.look_up(1_000, shop.own)
    assert shop.fails() == []


def fee_of(shop: Shop, organization_id: UUID, micros: int) -> None:
    change = shop.process.accounts.change_organization
    change(organization_id, lambda it: it.change_monthly_link_fee(micros, shop.process.cause()))


def begin_april(shop: Shop, minutes: float = 5) -> None:
    """Let the clock and the worker do what they do then."""
    shop.at(APRIL + timedelta(minutes=minutes))
    bill(shop.process)
    close(shop, "2026-03")
    shop.process.projector.catch_up()


def end_april(shop: Shop) -> None:
    shop.at(first_instant("2026-05") + timedelta(minutes=5))
    close(shop, "2026-04")


def test_fees_follow_from_what_was_in_force_as_the_month_began(shop: Shop) -> None:
    """Changed rates, a suspended organization, links that ended, or came too late."""
    links = [
        LinkSteps(shop.process, owner, plan=bought("Europe", "0")).activate()
        for owner in (shop.own, shop.own, shop.own, shop.other)
    ]
    for owner in (shop.own, shop.other):
        fee_of(shop, owner, 300_000)
    shop.at(APRIL - timedelta(days=1))
    fee_of(shop, shop.own, 200_000)
    shop.process.change(shop.other, lambda it, cause: it.change_status("suspended", cause))
    end(shop, links[0])
    shop.at(APRIL + timedelta(seconds=30))
    fee_of(shop, shop.own, 100_000)
    end(shop, links[1])
    LinkSteps(shop.process, shop.own, plan=bought("Late", "0")).activate()
    begin_april(shop)
    end_april(shop)
    due = [row for row in shop.process.log.stored(0, 1_000) if row.topic == "monthly_fee.due"]
    assert [b'"fee_micros":200000' in row.state for row in due] == [True]
    assert shop.fails() == []


def end(shop: Shop, life: LinkSteps) -> None:
    life.link.record(Link.EndRequested, shop.process.cause(), kind="end", until=shop.clock.now)
    life.link.end([], shop.process.cause())
    shop.process.log.append(life.link)


def test_a_fee_that_is_frozen_weeks_later_is_right_and_one_that_never_is_is_not(
    shop: Shop,
) -> None:
    LinkSteps(shop.process, shop.own, plan=bought("Europe", "0")).activate()
    fee_of(shop, shop.own, 300_000)
    shop.at(APRIL + timedelta(minutes=5))
    close(shop, "2026-03")
    assert shop.fails() == []
    end_april(shop)
    assert shop.fails() == [f"{shop.own} owes a fee for 2026-04, which has not fallen due"]
    bill(shop.process)
    assert shop.fails() == []
