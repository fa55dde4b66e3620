"""A job in the midst of its work: items in the order submitted, from the log or from its table."""

from uuid import UUID

import pytest

from domain.lookups.bulk_commands import SLICE_ITEMS
from tests.app.http.conftest import MakeService
from tests.app.http.service import Tenant

NUMBERS = [f"+1415555{n:04}" for n in range(SLICE_ITEMS)] + ["+971508245915", "+15005550001"]


@pytest.fixture
def tenant(make_service: MakeService) -> Tenant:
    return make_service().tenant()


def test_a_job_of_which_one_slice_is_done_is_processing(tenant: Tenant) -> None:
    job_id = tenant.create_job(NUMBERS).json["data"]["job_id"]
    path = f"/number-lookup/bulk/{job_id}"
    parts = tenant.service.container
    parts.bulk_lookup.work(UUID(job_id), 1)
    job = tenant.get(path).json["data"]
    assert (job["status"], job["processed_count"], job["failed_count"]) == ("processing", 2, 1)
    assert job["finished_at"] is None
    assert [item["phone_number"] for item in job["items"]] == NUMBERS
    states = [item["status"] for item in job["items"]]
    assert states == ["pending"] * SLICE_ITEMS + ["completed", "failed"]
    assert tenant.get(path).headers["Retry-After"] == "1"
    parts.bulk_lookup.work(UUID(job_id), 0)
    done = tenant.get(path).json["data"]
    assert (done["status"], done["processed_count"], done["failed_count"]) == (
        "completed",
        len(NUMBERS),
        1,
    )
    assert [item["phone_number"] for item in done["items"]] == NUMBERS


def test_the_log_and_the_table_show_the_same_job(tenant: Tenant) -> None:
    path = f"/number-lookup/bulk/{tenant.create_job(NUMBERS).json['data']['job_id']}"
    parts = tenant.service.container
    from_log = tenant.get(path)
    parts.projector.catch_up()
    from_table = tenant.get(path)
    assert from_log.json["data"] == from_table.json["data"]
    assert from_log.headers["ETag"] == from_table.headers["ETag"]
    parts.bulk_lookup.work(UUID(path.rpartition("/")[2]), 1)
    assert tenant.get(path).headers["ETag"] == from_table.headers["ETag"]
    parts.projector.catch_up()
    assert tenant.get(path).json["data"]["processed_count"] == 2
