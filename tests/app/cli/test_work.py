"""What a process left behind that died: it is found, and is done at once or is ended."""

from contextlib import closing
from datetime import timedelta
from uuid import UUID, uuid4

import pytest

from domain.cause import Cause, utc_now
from domain.links.bought_plan import BoughtPlan
from domain.links.link import Link, Stage
from domain.lookups.bulk_job import BulkJob
from tests.app.cli.shell import Shell
from tests.app.cli.test_operator import created


def retried(*, sent: int = 0, finished: int = 0) -> dict[str, int]:
    return {"sent": sent, "jobs_finished": finished, "links_unfinished": 0}


def accept_jobs(shell: Shell, *jobs: list[str], price_micros: int = 0) -> None:
    """Accept jobs as a process does that dies right after its replies."""
    organization = shell.new_organization()
    shell.run("wallet", "deposit", organization, "10", "--reference", "r")
    with closing(shell.container()) as container:
        for numbers in jobs:
            container.create_job(organization, numbers, price_micros)


def test_unfinished_jobs_are_worked_to_their_end_once(shell: Shell) -> None:
    long_job = [f"+1415{index:07d}" for index in range(300)]
    accept_jobs(shell, ["+14155552671"], long_job)
    shell.run("installation", "hold")
    assert "held copy" in shell.run("work", "retry", status=1).stderr
    shell.run("installation", "hold", "--end")
    assert shell.json("work", "retry") == retried(sent=3, finished=2)
    assert shell.json("work", "retry") == retried()
    accept_jobs(shell, *[["+14155552671"]] * 105)
    assert shell.json("work", "retry") == retried(sent=105, finished=105)


def left_behind(shell: Shell, organization_id: UUID) -> UUID:
    """Ask for a link as a process does that dies right after it."""
    link = Link.request(
        uuid4(),
        Cause(utc_now(), "request-1"),
        organization_id=organization_id,
        name=None,
        plan=BoughtPlan(uuid4(), "eu-1", "Europe 1 GB", 4_000_000, 1_000, 7, ["FR"]),
        sponsor_profiles=[],
        currency="USD",
        deadline=utc_now() + timedelta(minutes=5),
    )
    with closing(shell.container()) as container:
        container.log.append(link)
    return link.id


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


def test_a_link_that_is_stuck_is_found_and_made_once(anna: Shell) -> None:
    organization = anna.new_organization()
    anna.run("wallet", "deposit", organization, "10", "--reference", "r")
    link_id = left_behind(anna, organization)
    (stuck,) = anna.json("links", "list", "--unfinished")["data"]
    known = {"kind": "link", "id": str(link_id), "link": str(link_id), "stage": "requested"}
    assert known.items() <= stuck.items()
    assert (stuck["organization"], stuck["age_s"] >= 0) == (str(organization), True)
    other = anna.new_organization()
    assert anna.json("links", "list", "--unfinished", "--org", other) == {"data": []}
    assert anna.json("work", "retry") == retried(sent=1)
    with closing(anna.container()) as container:
        assert container.log.get(Link, link_id).stage is Stage.ACTIVE
    assert anna.json("wallet", "show", organization)["balance"] == "6.00"
    assert anna.json("work", "retry") == retried()
    assert anna.json("links", "list", "--unfinished") == {"data": []}
