"""A job that is cancelled over HTTP, and the list of jobs."""

from uuid import UUID

import pytest

from domain.lookups.bulk_commands import SLICE_ITEMS
from domain.lookups.bulk_job import BulkJob
from tests.app.http.conftest import MakeService
from tests.app.http.service import Tenant
from tests.installation import numbers

BULK = "/number-lookup/bulk"


@pytest.fixture
def still(make_service: MakeService) -> Tenant:
    """A tenant of a service whose workers stand still."""
    return make_service().tenant()


def new_job(tenant: Tenant, count: int = SLICE_ITEMS + 1) -> str:
    return str(tenant.create_job(numbers(count)).json["data"]["job_id"])


def cancel(tenant: Tenant, job_id: str) -> dict[str, object]:
    reply = tenant.open("DELETE", f"{BULK}/{job_id}")
    assert reply.status_code == 200, reply.text
    data: dict[str, object] = reply.json["data"]
    return data


def test_a_body_that_cannot_be_read_cancels_nothing(still: Tenant) -> None:
    job_id = new_job(still)
    reply = still.open("DELETE", f"{BULK}/{job_id}", data=b"{", content_type="application/json")
    assert reply.status_code == 400
    log = still.service.container.log
    assert log.get(BulkJob, UUID(job_id)).finished_at is None


def test_a_replay_of_a_cancelled_job_is_the_first_202_again(still: Tenant) -> None:
    key = {"Idempotency-Key": "key-1"}
    first = still.create_job(numbers(3), **key)
    cancel(still, first.json["data"]["job_id"])
    again = still.create_job(numbers(3), **key)
    assert (again.status_code, again.headers["Idempotency-Replayed"]) == (202, "true")
    assert again.json["data"] == first.json["data"]
