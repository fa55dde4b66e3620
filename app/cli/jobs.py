"""`jobs`: bulk lookup jobs, and how one is cancelled."""

from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

import click

from app.bootstrap.container import BOOT_JOBS_MAX, Container
from app.cli.installation import catch_up, cause_of, installation, require_organization
from app.cli.output import as_json_option, show, show_list
from app.cli.working import working
from domain.lookups.bulk_job import BulkJob
from domain.money import format_amount
from projections.models.jobs import ListedJob, row_of


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


@command.command(name="list")
@click.option("--org", "organization_id", metavar="ID", type=click.UUID, help="Of this one only.")
@click.option("--unfinished", is_flag=True, help="Only what has not ended, the oldest first.")
@as_json_option
def list_all(*, organization_id: UUID | None, unfinished: bool, as_json: bool) -> None:
    """List jobs, newest first, and of each that has not ended its age and since when it rests."""
    with installation() as container:
        require_organization(container, organization_id)
        catch_up(container)
        now = container.clock()
        with container.views.reading() as connection:
            found = container.jobs.all(connection, organization_id, unfinished=unfinished)
    show_list([_facts(each, now) for each in found], as_json=as_json)


@command.command()
@click.argument("job_id", metavar="ID", type=click.UUID)
@as_json_option
def cancel(*, job_id: UUID, as_json: bool) -> None:
    """End a job as its organization can: what has no outcome is cancelled, and refunded."""
    with installation() as container:
        cause, job = cause_of(container), container.log.get(BulkJob, job_id, f"job {job_id}")
        row = row_of(container.bulk_cancel.run(job, cause))
    counts = {"cancelled": row.cancelled_count, "refunded": format_amount(row.refunded_micros)}
    show({"id": job_id, "status": "cancelled", **counts}, as_json=as_json)


def _facts(job: ListedJob, now: datetime) -> dict[str, Any]:
    def since(moment: datetime) -> int | None:
        return None if job.finished_at is not None else int((now - moment).total_seconds())

    return {
        "id": job.id,
        "organization": job.organization_id,
        "status": job.status,
        "total": job.total_count,
        "processed": job.processed_count,
        "created_at": job.created_at,
        "finished_at": job.finished_at,
        "age_s": since(job.created_at),
        "idle_s": since(job.moved_at),
    }


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
