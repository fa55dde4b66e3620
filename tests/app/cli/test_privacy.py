"""`privacy erase`: which months go, which stay, and what is refused."""

from datetime import UTC, datetime, timedelta
from uuid import UUID, uuid4

import pytest

from domain.cause import Cause, utc_now
from domain.lookups.bulk_commands import BulkRequest
from domain.lookups.bulk_job import BulkJob
from domain.lookups.ports import CachedFacts, NumberFacts
from domain.lookups.single import LookupRequest
from domain.months import month_of
from tests.app.cli.shell import Shell

NUMBER = "+14155552671"
JANUARY = datetime(2024, 1, 31, 23, 59, tzinfo=UTC)
FEBRUARY = datetime(2024, 2, 1, tzinfo=UTC)


def ask(shell: Shell, organization: UUID, at: datetime) -> UUID:
    """Look up a number, keep an answer and accept a job at some moment; return the job."""
    container = shell.container(lambda: at)
    cause = Cause(at, "r")
    container.single_lookup.run(LookupRequest(organization, NUMBER, 0, "USD", None), cause)
    kept = CachedFacts(NumberFacts(NUMBER, valid=True), "remote", at)  # As of a remote provider.
    container.lookup_cache.keep(organization, [kept])
    request = BulkRequest(organization, [NUMBER], 0, "USD", None)
    job_id = container.bulk_create.run(request, cause)[0].id
    container.close()
    return job_id


def is_readable(shell: Shell, job_id: UUID) -> bool:
    container = shell.container()
    job = container.log.get(BulkJob, job_id)
    clear = container.vault.open(job.organization_id, job_id, job.created.personal)
    container.close()
    return clear is not None


@pytest.fixture
def organization(shell: Shell) -> UUID:
    return shell.new_organization()


def test_earlier_months_are_erased_and_later_ones_stay(shell: Shell, organization: UUID) -> None:
    old, new = (ask(shell, organization, at) for at in (JANUARY, FEBRUARY))
    assert shell.json("privacy", "erase", "--before", "2024-01")["erased_keys"] == 0
    assert is_readable(shell, old)
    assert shell.json("privacy", "erase", "--before", "2024-02")["erased_keys"] == 1
    assert (is_readable(shell, old), is_readable(shell, new)) == (False, True)
    assert shell.json("audit", "verify")["ok"] is True


def test_answers_of_those_months_are_forgotten(shell: Shell, organization: UUID) -> None:
    ask(shell, organization, JANUARY)
    ask(shell, shell.new_organization(), FEBRUARY)
    assert shell.json("privacy", "erase", "--before", "2024-02") == {
        "before": "2024-02",
        "organization": None,
        "erased_keys": 1,
        "forgotten_answers": 1,
    }
    assert shell.json("privacy", "erase", "--before", "2024-02")["forgotten_answers"] == 0


def test_one_organization_can_be_erased_alone(shell: Shell, organization: UUID) -> None:
    other = shell.new_organization()
    mine, theirs = (ask(shell, each, JANUARY) for each in (organization, other))
    erased = shell.json("privacy", "erase", "--before", "2024-02", "--org", organization)
    assert erased["organization"] == str(organization)
    assert (erased["erased_keys"], erased["forgotten_answers"]) == (1, 1)
    assert (is_readable(shell, mine), is_readable(shell, theirs)) == (False, True)


def test_the_present_month_is_the_last_that_may_be_named(shell: Shell, organization: UUID) -> None:
    job_id = ask(shell, organization, utc_now())
    assert shell.json("privacy", "erase", "--before", month_of(utc_now()))["erased_keys"] == 0
    next_month = month_of(utc_now() + timedelta(days=32))
    assert next_month in shell.refusal("privacy", "erase", "--before", next_month)
    assert is_readable(shell, job_id)


def test_an_unknown_organization_is_refused(shell: Shell) -> None:
    erase = ["privacy", "erase", "--before", "2024-02", "--org", uuid4()]
    assert "there is no organization" in shell.refusal(*erase)


@pytest.mark.parametrize(
    "month", ["2026-13", "2026-00", "2026-1", "202601", "2026-01-01", "0999-01", "2026-01\n", ""]
)
def test_a_wrong_month_is_named(shell: Shell, month: str) -> None:
    assert "--before" in shell.refusal("privacy", "erase", "--before", month, status=2)
