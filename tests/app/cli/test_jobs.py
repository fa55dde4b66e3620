"""`jobs retry`: work whose messages died with a process is done at once, in the one that asks."""

from domain.cause import Cause, utc_now
from domain.lookups.bulk_commands import BulkRequest
from tests.app.cli.shell import Shell
from workers.sweep import JOBS_MAX


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
    assert shell.json("jobs", "retry") == {"sent": 3, "finished": 2}
    assert shell.json("jobs", "retry") == {"sent": 0, "finished": 0}


def test_more_jobs_than_one_sweep_takes_are_all_worked(shell: Shell) -> None:
    jobs = JOBS_MAX + 5
    accept_jobs(shell, *[["+14155552671"]] * jobs)
    told = shell.json("jobs", "retry")
    assert told == {"sent": JOBS_MAX, "finished": jobs}  # Whoever works rings while there is more.
