"""`work retry`: what a process left behind that died is done at once, in the one that asks."""

from contextlib import closing
from datetime import timedelta
from uuid import UUID, uuid4

from domain.cause import Cause, utc_now
from domain.links.bought_plan import BoughtPlan
from domain.links.link import Link, Stage
from domain.lookups.bulk_commands import BulkRequest
from tests.app.cli.shell import Shell
from workers.sweep import JOBS_MAX


def retried(*, sent: int = 0, finished: int = 0) -> dict[str, int]:
    return {"sent": sent, "jobs_finished": finished, "links_unfinished": 0}


def accept_jobs(shell: Shell, *jobs: list[str], price_micros: int = 0) -> None:
    """Accept jobs as a process does that dies right after its replies."""
    organization = shell.new_organization()
    shell.run("wallet", "deposit", organization, "10", "--reference", "r")
    container = shell.container()
    for numbers in jobs:
        request = BulkRequest(organization, numbers, price_micros, "USD", None)
        container.bulk_create.run(request, Cause(utc_now(), "r"))
    container.close()


def test_unfinished_jobs_are_worked_to_their_end_once(shell: Shell) -> None:
    long_job = [f"+1415{index:07d}" for index in range(300)]
    accept_jobs(shell, ["+14155552671"], long_job)
    assert shell.json("work", "retry") == retried(sent=3, finished=2)
    assert shell.json("work", "retry") == retried()


def test_more_jobs_than_one_sweep_takes_are_all_worked(shell: Shell) -> None:
    jobs = JOBS_MAX + 5
    accept_jobs(shell, *[["+14155552671"]] * jobs)
    told = shell.json("work", "retry")
    assert told == retried(sent=JOBS_MAX, finished=jobs)  # Whoever works rings while there is more.


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


def test_a_link_that_was_left_behind_is_made_once(shell: Shell) -> None:
    shell = shell.having(NETWORK_BASE_PLAN="base-1")
    organization = shell.new_organization()
    shell.run("wallet", "deposit", organization, "10", "--reference", "r")
    link_id = left_behind(shell, organization)

    assert shell.json("work", "retry") == retried(sent=1)

    with closing(shell.container()) as container:
        assert container.log.get(Link, link_id).stage is Stage.ACTIVE
    assert shell.json("wallet", "show", organization)["balance"] == "6.00"
    assert shell.json("work", "retry") == retried()
