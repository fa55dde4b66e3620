"""What is open is shown per slice and counted per organization; what has ended leaves no row."""

from uuid import UUID

import pytest

from domain.lookups.bulk_commands import SLICE_ITEMS
from projections.engine.read_model import Batch
from projections.models.open_slices import Slice
from tests.installation import Installation, Process, numbers
from tests.projections.histories import cancel_job, create_job

COUNT = 2 * SLICE_ITEMS + 1


def shown(process: Process, organization_id: UUID) -> tuple[list[Slice], int]:
    model = process.open_slices
    with process.views.reading() as connection:
        slices = model.first(connection, organization_id, 10)
        owners = model.organizations_of(connection)
        assert (organization_id in owners) == bool(slices)
        assert all(model.knows(connection, each.job_id) for each in slices)
        return slices, model.items_of(connection, organization_id)


@pytest.mark.parametrize("size", [1, 2, 3, 100])
def test_a_batch_may_end_anywhere(
    process: Process, organization_id: UUID, installation: Installation, size: int
) -> None:
    job_id = create_job(process, organization_id, numbers(COUNT))
    process.bulk_lookup.work(job_id, 2)
    process.bulk_lookup.work(job_id, 0)
    for slice_count in (1, 2):
        hasty = create_job(process, organization_id, numbers(slice_count * SLICE_ITEMS))
        process.bulk_lookup.work(hasty, 1)
        cancel_job(process, organization_id, hasty)
    done = process.organization()
    process.bulk_lookup.work(create_job(process, done, numbers(1)), 0)
    other = installation.process()
    model, events = other.open_slices, other.log.read(0, 100)
    for start in range(0, len(events), size):
        with other.views.writing() as connection:
            model.follow(connection, Batch(events[start : start + size]))
    assert shown(other, organization_id) == ([Slice(job_id, 1)], SLICE_ITEMS)
    with other.views.reading() as connection:
        rows = connection.execute(model.organizations.select()).all()
    assert [row.organization_id for row in rows] == [organization_id]  # Nothing is left of `done`.
