"""A bulk job is accepted and paid in one commit, once per key."""

import msgspec
import pytest

from domain.accounts.wallet import Wallet
from domain.errors import (
    BillingNotConfigured,
    InsufficientBalance,
)
from domain.lookups.bulk_job import BulkJob, PersonalNumbers
from tests.domain.asking import Asker, all_at_once
from tests.installation import PRICE_MICROS, CountingProvider, Installation, numbers


@pytest.fixture
def asker(installation: Installation) -> Asker:
    return Asker(installation, CountingProvider(), "10.00")


def poor(installation: Installation, amount: str) -> Asker:
    return Asker(installation, CountingProvider(), amount)


def test_a_job_and_the_charge_for_all_of_it_are_one_commit(asker: Asker) -> None:
    job_id, replayed = asker.create(numbers(1_000))
    created, charged = (each.event for each in asker.recorded()[-2:])
    assert isinstance(created, BulkJob.Created)
    assert isinstance(charged, Wallet.Charged)
    assert (created.originator_id, replayed) == (job_id, False)
    assert created.price is not None
    assert charged.transaction_id == created.price.transaction_id
    assert charged.amount_micros == 1_000 * PRICE_MICROS
    assert asker.balance_micros == 5_000_000
    asker.check()


def test_the_numbers_are_kept_sealed_and_in_order(asker: Asker) -> None:
    wanted = numbers(20)[::-1]
    job_id, _ = asker.create(wanted)
    job = asker.process.log.get(BulkJob, job_id)
    stored = asker.process.log.recorder.select_events(job_id)
    assert not any(number[1:].encode() in each.state for number in wanted for each in stored)
    clear = asker.process.vault.open(asker.organization_id, job_id, job.created.personal)
    assert clear is not None
    assert msgspec.json.decode(clear, type=PersonalNumbers).phone_numbers == wanted


@pytest.mark.any_database
def test_a_balance_that_is_short_accepts_nothing(installation: Installation) -> None:
    asker = poor(installation, "0.049999")
    with pytest.raises(InsufficientBalance) as refused:
        asker.create(numbers(10), key="key-1")
    assert refused.value.details["required"] == "0.05"
    assert "BulkJob.Created" not in asker.events()
    asker.process.accounts.deposit(asker.organization_id, 1, "bank-2", asker.process.cause())
    assert not asker.create(numbers(9), key="key-1")[1]
    asker.check()


@pytest.mark.any_database
def test_without_a_wallet_only_free_jobs_are_accepted(installation: Installation) -> None:
    asker = poor(installation, "")
    with pytest.raises(BillingNotConfigured):
        asker.create(numbers(2))
    job_id, _ = asker.create(numbers(2), price_micros=0)
    assert asker.process.log.get(BulkJob, job_id).created.price is None
    asker.check()


def test_jobs_that_race_for_the_last_money_are_accepted_while_it_lasts(
    installation: Installation,
) -> None:
    asker = poor(installation, "0.20")
    outcomes = all_at_once(12, lambda each: asker.create(numbers(10, start=each)))
    accepted = [each for each in outcomes if isinstance(each, tuple)]
    assert len(accepted) == 4
    assert all(isinstance(each, tuple | InsufficientBalance) for each in outcomes)
    assert asker.balance_micros == 0
    asker.check()
