"""A bulk job is accepted and paid in one commit, once per key."""

import msgspec
import pytest

from domain.lookups.bulk_job import BulkJob, PersonalNumbers
from tests.domain.asking import Asker
from tests.installation import CountingProvider, Installation, numbers


@pytest.fixture
def asker(installation: Installation) -> Asker:
    return Asker(installation, CountingProvider(), "10.00")


def test_the_numbers_are_kept_sealed_and_in_order(asker: Asker) -> None:
    wanted = numbers(20)[::-1]
    job_id, _ = asker.create(wanted)
    job = asker.process.log.get(BulkJob, job_id)
    stored = asker.process.log.recorder.select_events(job_id)
    assert not any(number[1:].encode() in each.state for number in wanted for each in stored)
    clear = asker.process.vault.open(asker.organization_id, job_id, job.created.personal)
    assert msgspec.json.decode(clear, type=PersonalNumbers).phone_numbers == wanted
