"""What an alert tells of is found by a command, and an operator can end it under a name."""

from contextlib import closing
from uuid import UUID

import pytest

from domain.lookups.bulk_job import BulkJob
from tests.app.cli.shell import Shell
from tests.app.cli.test_operator import created
from tests.app.cli.test_work import accept_jobs, left_behind


@pytest.fixture
def anna(shell: Shell) -> Shell:
    boss = created(shell.having(NETWORK_BASE_PLAN="base-1"), "boss", "keys")[1]
    return created(boss, "anna", "money,keys")[1]


def test_a_job_that_is_stuck_is_found_and_cancelled(anna: Shell) -> None:
    accept_jobs(anna, ["+14155552671", "+14155552672"], ["+14155552673"], price_micros=1_000_000)
    oldest, newer = anna.json("jobs", "list", "--unfinished")["data"]
    assert oldest["age_s"] >= oldest["idle_s"] >= 0
    anna.run("jobs", "cancel", oldest["id"])
    with closing(anna.container()) as container:
        event = container.log.history(UUID(oldest["id"]))[-1]
    assert isinstance(event, BulkJob.Cancelled)
    assert event.actor == f"operator:{anna.json('operator', 'list')['data'][1]['id']}"
    (left,) = anna.json("jobs", "list", "--unfinished")["data"]
    assert left["id"] == newer["id"]
    back = anna.json("audit", "replay")["data"][-1]
    assert (back["kind"], back["actor_name"]) == ("refund", "anna")
    assert "anna" in anna.run("audit", "replay").stdout.splitlines()[-1]
    assert anna.json("audit", "verify")["ok"]


def test_a_link_that_is_stuck_is_found(anna: Shell) -> None:
    organization = anna.new_organization()
    link_id = left_behind(anna, organization)
    (stuck,) = anna.json("links", "list", "--unfinished")["data"]
    known = {"kind": "link", "id": str(link_id), "link": str(link_id), "stage": "requested"}
    assert known.items() <= stuck.items()
    assert (stuck["organization"], stuck["age_s"] >= 0) == (str(organization), True)
    other = anna.new_organization()
    assert anna.json("links", "list", "--unfinished", "--org", other) == {"data": []}
    anna.run("work", "retry")
    assert anna.json("links", "list", "--unfinished") == {"data": []}
