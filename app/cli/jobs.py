"""`jobs`: bulk lookup jobs that are not finished."""

from datetime import timedelta
from uuid import UUID

import click

from app.bootstrap.container import BOOT_JOBS_MAX, Container
from app.cli.installation import catch_up, installation
from app.cli.output import as_json_option, show
from app.cli.working import working
from domain.lookups.bulk_job import BulkJob


@click.group(name="jobs")
def command() -> None:
    """Bulk lookup jobs."""


@command.command()
@as_json_option
def retry(*, as_json: bool) -> None:
    """Work on all unfinished jobs now, as the clock would do later.

    Without RabbitMQ the queue of a running service is inside its process, so this command does the
    work itself; with RabbitMQ it only asks, and the workers do it. A running service may work on
    the same jobs: nothing is charged or refunded twice.
    """
    with installation() as container:
        sent, finished = _retry(container)
    show({"sent": sent, "finished": finished}, as_json=as_json)


def _retry(container: Container) -> tuple[int, int]:
    """Sweep and work until a sweep finds nothing new; return messages and jobs ended."""
    sent = 0
    swept: set[UUID] = set()
    container.slices_in_hand.end_rests()
    with working(container) as drain:
        while True:
            catch_up(container)
            waiting = _unfinished(container)
            asked = container.sweep.run(idle=timedelta(0))
            if not asked:
                break
            sent += asked
            swept |= waiting
            drain()
            if not container.settings.has_own_broker:
                break
    return sent, sum(_is_finished(container, job_id) for job_id in swept)


def _unfinished(container: Container) -> set[UUID]:
    with container.views.reading() as connection:
        found = container.jobs.unfinished(connection, container.clock(), BOOT_JOBS_MAX)
    return {job.id for job in found}


def _is_finished(container: Container, job_id: UUID) -> bool:
    job = container.log.find(BulkJob, job_id)
    return job is not None and job.finished_at is not None
