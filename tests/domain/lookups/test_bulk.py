"""A bulk job is accepted and paid in one commit, once per key."""

import msgspec
import pytest

from domain.errors import InsufficientBalance
from domain.lookups.bulk_job import BulkJob, PersonalNumbers
from tests.domain.asking import Asker, all_at_once
from tests.installation import CountingProvider, Installation, numbers


@pytest.fixture
def asker(installation: Installation) -> Asker:
    return Asker(installation, CountingProvider(), "10.00")


def poor(installation: Installation, amount: str) -> Asker:
    return Asker(installation, CountingProvider(), amount)


def test_the_numbers_are_kept_sealed_and_in_order(asker: Asker) -> None:
    wanted = numbers(20)[::-1]
    job_id, _ = asker.create(wanted)
    job = asker.process.log.get(BulkJob, job_id)
    stored = asker.process.log.recorder.select_events(job_id)
    assert not any(number[1:].encode() in each.state for number in wanted for each in stored)
    clear = asker.process.vault.open(asker.organization_id, job_id, job.created.personal)
    assert msgspec.json.decode(clear, type=PersonalNumbers).phone_numbers == wanted


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
