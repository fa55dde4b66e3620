"""`privacy erase`: which months go, which stay, and what is refused."""

import sqlite3
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from uuid import UUID

import pytest

from app.adapters.sqlite import database
from app.processes.erasing import erase_again
from domain.accounts.operator_acts import Erasure, Part
from domain.cause import Cause, utc_now
from domain.lookups.bulk_job import BulkJob
from domain.lookups.ports import CachedFacts, NumberFacts
from domain.months import month_of, next_month
from projections.stores import personal_keys
from projections.stores.lookup_cache import SqlLookupCache
from tests.app.cli.shell import Shell
from tests.installation import Process
from tests.projections.link_steps import LinkSteps

NUMBER = "+14155552671"
JANUARY = datetime(2024, 1, 31, 23, 59, tzinfo=UTC)
FEBRUARY = datetime(2024, 2, 1, tzinfo=UTC)


def ask(shell: Shell, organization: UUID, at: datetime) -> UUID:
    """Look up a number, keep an answer and accept a job at some moment; return the job."""
    kept = CachedFacts(NumberFacts(NUMBER, valid=True), "remote", at)  # As of a remote provider.
    with closing(shell.container(lambda: at)) as container:
        container.look_up(organization, NUMBER, price_micros=0)
        container.lookup_cache.save(organization, [kept])
        return container.create_job(organization, [NUMBER], 0)


def is_readable(shell: Shell, job_id: UUID) -> bool:
    with closing(shell.container()) as container:
        job = container.log.get(BulkJob, job_id)
        personal = job.created.personal
        return container.vault.open(job.organization_id, job_id, personal) is not None


def test_earlier_months_are_erased_and_later_ones_stay(shell: Shell, organization: UUID) -> None:
    old, new = (ask(shell, organization, at) for at in (JANUARY, FEBRUARY))
    assert shell.json("privacy", "erase", "--before", "2024-01")["erased_keys"] == 0
    assert is_readable(shell, old)
    assert shell.json("privacy", "erase", "--before", "2024-02")["erased_keys"] == 1
    assert (is_readable(shell, old), is_readable(shell, new)) == (False, True)
    assert shell.json("audit", "verify")["ok"] is True


def test_an_erasure_that_is_refused_makes_no_key(
    shell: Shell, organization: UUID, monkeypatch: pytest.MonkeyPatch
) -> None:
    ask(shell, organization, utc_now())
    monkeypatch.setattr("app.cli.session.LOCK_WAIT_S", 0.1)
    until = next_month(month_of(utc_now()))
    with closing(shell.container()) as container:
        assert container.operators_lock.acquire()
        assert "has not ended" in shell.refusal("privacy", "erase", "--before", until)
        assert len(container.vault.keys_before(until, organization)[organization]) == 1


def test_what_an_earlier_release_sealed_goes_with_its_whole_month_only(
    shell: Shell, organization: UUID, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as earlier:
        earlier.setattr(personal_keys, "_next", lambda month: month)
        earlier.setattr(personal_keys, "NUMBERED", "2024")  # Each key seals by itself.
        earlier.setattr(personal_keys, "_way", lambda _: "")
        jobs = [ask(shell, organization, JANUARY) for _ in range(2)]
    jobs.append(ask(shell, organization, JANUARY))
    one = ("privacy", "erase", "--org", organization, "--job", jobs[0])
    refusal = shell.refusal(*one)
    assert "2024-01" in refusal
    assert "--whole-months" in refusal
    assert [each["whole_month"] for each in shell.json(*one, "--dry-run")["data"]] == [True]
    assert all(is_readable(shell, each) for each in jobs)
    assert shell.json(*one, "--whole-months")["erased_keys"] == 1
    assert [is_readable(shell, each) for each in jobs] == [False] * 3
    assert is_readable(shell, ask(shell, organization, JANUARY))
    assert shell.json("audit", "verify")["ok"] is True


def test_a_name_that_an_earlier_release_wrote_is_ended_and_the_log_keeps_it(shell: Shell) -> None:
    with closing(Process(shell.container().settings)) as process:
        link = LinkSteps(process, process.organization(), "Frieda Muster").activate()
    told = shell.json("privacy", "erase", "--link", link.iccid, "--whole-months")
    assert told["names_in_clear"] == 2  # As it was asked for, and at the activation.
    assert shell.json("links", "show", link.id)["name"] is None
    assert shell.json("links", "list")["data"][0]["name"] is None


@pytest.mark.parametrize("way", ["migrate", "the clock"])
def test_an_erasure_whose_command_was_killed_or_whose_keys_came_back_is_made_again(
    shell: Shell, organization: UUID, way: str
) -> None:
    job_id = ask(shell, organization, JANUARY)
    with closing(shell.container()) as container:
        key = container.log.get(BulkJob, job_id).created.personal.month
        lookups = [Part(key, [job_id])]
        container.log.append(Erasure.make(organization, lookups, Cause(FEBRUARY, "r")))
    assert is_readable(shell, job_id)
    if way == "migrate":
        shell.run("migrate")
    else:
        with closing(shell.container()) as container:
            container.projector.catch_up()
            erase_again(container, 1)
    assert not is_readable(shell, job_id)


def test_an_erasure_that_was_killed_leaves_no_answer_behind(
    shell: Shell, organization: UUID
) -> None:
    one = ("privacy", "erase", "--job", ask(shell, organization, utc_now()))
    with pytest.MonkeyPatch.context() as killed:
        killed.setattr(SqlLookupCache, "forget_numbers", lambda *_: Path("/gone").stat())
        shell.refusal(*one)
    assert shell.json(*one)["forgotten_answers"] == 1


def test_an_erasure_that_a_reader_keeps_from_the_file_says_so(
    shell: Shell, organization: UUID, monkeypatch: pytest.MonkeyPatch
) -> None:
    job_id = ask(shell, organization, JANUARY)
    monkeypatch.setattr(database, "BUSY_TIMEOUT_S", 0.1)
    with closing(sqlite3.connect(shell.database)) as reader:
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM personal_keys").fetchall()
        assert "run this again" in shell.refusal("privacy", "erase", "--before", "2024-02")
    assert not is_readable(shell, job_id)
    shell.run("privacy", "erase", "--before", "2024-02")
