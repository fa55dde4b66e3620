"""The command that limits spending, and what holds then in every process at once."""

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest

from domain.accounts.organization import Organization
from domain.accounts.spending import Spending
from domain.accounts.wallet import Wallet, wallet_id
from domain.errors import SpendingLimit
from domain.months import month_of
from projections.audit.auditor import check_log
from tests.domain.asking import Asker, all_at_once
from tests.installation import CountingProvider, Installation, Process, SetClock, numbers

THREADS, PRICE_MICROS = 50, 5_000


def limit(process: Process, organization_id: UUID, micros: int | None) -> Organization:
    return process.accounts.set_spending_limit(organization_id, micros, process.cause())


def spending(process: Process, organization_id: UUID) -> Spending | None:
    return process.log.get(Wallet, wallet_id(organization_id)).spending


def spent(process: Process, organization_id: UUID) -> int:
    return spending(process, organization_id).spent_micros


def test_what_was_spent_in_the_month_counts_and_what_was_before_does_not(
    installation: Installation, provider: CountingProvider
) -> None:
    clock = SetClock()
    asker = Asker(installation, provider)
    asker.process = installation.process(clock, provider)
    asker.organization_id = asker.process.organization("1.00")
    asker.look_up()
    clock.forward(days=32)
    for _ in range(3):
        asker.look_up()
    limit(asker.process, asker.organization_id, 20_000)
    assert spending(asker.process, asker.organization_id) == Spending(
        20_000, month_of(clock()), 15_000
    )
    asker.look_up()
    with pytest.raises(SpendingLimit):
        asker.look_up()
    assert len(provider.asked) == 5, "the provider was asked for what could not be paid"
    clock.forward(days=32)
    asker.look_up()
    assert check_log(asker.process.log).failures == []


MIDNIGHT = datetime(2026, 4, 1, tzinfo=UTC)


@pytest.mark.each_database
@pytest.mark.parametrize(
    ("seconds", "hour", "counted"),
    [([-1, 1, -2], 9, 2), ([1, -2, -86_000, 30], -1, 4), ([-1, -2], 9, 0)],
)
def test_entries_around_midnight_count_as_the_audit_counts_them(
    installation: Installation, seconds: list[int], hour: int, counted: int
) -> None:
    clock = SetClock(MIDNIGHT - timedelta(days=3))
    asker = Asker(installation, CountingProvider())
    asker.process = installation.process(clock)
    asker.organization_id = asker.process.organization("1.00")
    for each in seconds:  # A request that began before midnight is committed behind later ones.
        clock.now = MIDNIGHT + timedelta(seconds=each)
        asker.look_up()
    for now in (MIDNIGHT + timedelta(hours=hour), MIDNIGHT + timedelta(hours=10)):
        clock.now = now  # Perhaps of a clock that was set back.
        limit(asker.process, asker.organization_id, 1_000_000 + now.hour)
        assert spent(asker.process, asker.organization_id) == counted * PRICE_MICROS
    assert check_log(asker.process.log).failures == []


def test_a_charge_of_the_next_month_while_a_limit_is_set_begins_that_month(
    installation: Installation,
) -> None:
    clock = SetClock(MIDNIGHT - timedelta(seconds=1))
    asker = Asker(installation, CountingProvider())
    asker.process = installation.process(clock)
    asker.organization_id = asker.process.organization("1.00")
    asker.look_up()
    cause = asker.process.cause()
    committer, real = asker.process.committer, asker.process.committer.commit

    def commit_later(*given: Any) -> int:
        clock.now = MIDNIGHT
        vars(committer).pop("commit")
        asker.look_up()
        return real(*given)

    vars(committer)["commit"] = commit_later
    asker.process.accounts.set_spending_limit(asker.organization_id, 10_000, cause)
    assert spent(asker.process, asker.organization_id) == PRICE_MICROS
    assert check_log(asker.process.log).failures == []


def test_setting_a_limit_again_changes_nothing_and_ending_it_ends_it(process: Process) -> None:
    organization_id = process.organization("1.00")
    for micros in (50_000, None):
        limit(process, organization_id, micros)
        head = process.log.head()
        limit(process, organization_id, micros)
        assert process.log.head() == head
    assert spending(process, organization_id) is None
    assert check_log(process.log).failures == []


def test_a_wallet_that_is_opened_later_has_the_limit(process: Process) -> None:
    organization_id = process.organization("")
    limit(process, organization_id, 7)
    process.accounts.open_wallet(organization_id, process.cause())
    process.accounts.move("deposit", organization_id, 100, "bank-1", process.cause())
    held = spending(process, organization_id)
    assert (held.limit_micros, held.spent_micros) == (7, 0)
    assert check_log(process.log).failures == []


def test_a_limit_that_a_process_of_the_release_before_has_dropped_is_named_and_set_again(
    installation: Installation, provider: CountingProvider
) -> None:
    asker = Asker(installation, provider)
    process, organization_id = asker.process, asker.organization_id
    limit(process, organization_id, 10_000)
    asker.look_up()

    def forget(wallet: Wallet) -> None:
        wallet.spending = None

    def charge_as_before(wallet: Wallet) -> None:
        forget(wallet)
        wallet.enter(adjusted, "USD", process.cause())

    adjusted = process.accounts.move(
        "adjustment", organization_id, 1, "a", process.cause(), reason="a"
    )
    process.committer.commit(wallet_id(organization_id), charge_as_before)
    assert any("another limit" in each.reason for each in check_log(process.log).failures)
    limit(process, organization_id, 10_000)
    assert spent(process, organization_id) == 5_000


@pytest.mark.each_database
def test_a_limit_that_is_set_while_others_spend_counts_each_charge(
    installation: Installation, provider: CountingProvider
) -> None:
    asker = Asker(installation, provider, "100.00")
    given = numbers(200)

    def one(caller: int) -> object:
        if caller == 0:
            for micros in range(10_000_000, 10_000_005):
                limit(asker.process, asker.organization_id, micros)
        else:
            for each in given[caller - 1 :: 8]:
                asker.look_up(each, process=(asker.process, asker.other)[caller % 2])
        return None

    assert all_at_once(9, one) == [None] * 9
    assert spent(asker.process, asker.organization_id) == 200 * PRICE_MICROS
    assert check_log(asker.process.log).failures == []


@pytest.mark.each_database
@pytest.mark.parametrize("limit_micros", [20 * PRICE_MICROS, 20 * PRICE_MICROS + 1])
def test_fifty_threads_of_two_processes_never_go_past_the_limit(
    installation: Installation, provider: CountingProvider, limit_micros: int
) -> None:
    asker = Asker(installation, provider, "100.00")
    limit(asker.process, asker.organization_id, limit_micros)
    given = numbers(THREADS)
    outcomes = all_at_once(
        THREADS,
        lambda each: asker.look_up(given[each], process=(asker.process, asker.other)[each % 2]),
    )
    refused = [each for each in outcomes if isinstance(each, Exception)]
    assert {type(each) for each in refused} == {SpendingLimit}
    assert len(refused) == THREADS - 20
    assert spent(asker.process, asker.organization_id) == 20 * PRICE_MICROS
    assert check_log(asker.process.log).failures == []
