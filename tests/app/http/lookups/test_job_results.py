"""A job in the midst of its work, and its results: in order, from the log or from its table."""

import json
from contextlib import ExitStack
from typing import Any
from uuid import UUID, uuid4

import pytest

from app.http.lookups.job_replies import TYPES
from app.settings import DOWNLOADS_MAX, DOWNLOADS_OF_ONE_MAX
from domain.lookups.bulk_job import SLICE_ITEMS
from domain.personal import Sealed
from projections.stores.personal_keys import PersonalKeys
from tests.app.http.conftest import MakeService
from tests.app.http.service import Service, Tenant, code_of, fields_of
from tests.installation import numbers

BULK = "/number-lookup/bulk"
DOWN = "+15005550001"
WANTED = ["+971508245915", DOWN, *numbers(SLICE_ITEMS), "+9991234567"]


@pytest.fixture(scope="module")
def own(share_service: MakeService) -> Service:
    """A service in which nothing is done that no test does."""
    return share_service()


@pytest.fixture
def still(own: Service) -> Tenant:
    return own.tenant()


def begun_by(tenant: Tenant) -> str:
    """Return the path of a job whose first slice has ended; three items wait."""
    job_id = tenant.create_job(WANTED).json["data"]["job_id"]
    tenant.service.container.bulk_lookup.work(UUID(job_id), 0)
    tenant.service.container.projector.catch_up()
    return f"{BULK}/{job_id}"


@pytest.fixture(scope="module")
def reader(own: Service) -> Tenant:
    """For tests that change nothing."""
    return own.tenant()


@pytest.fixture(scope="module")
def job(reader: Tenant) -> str:
    return begun_by(reader)


def test_it_holds_a_place_until_it_is_sent(reader: Tenant, job: str) -> None:
    downloads = reader.service.container.downloads
    with ExitStack() as stack:
        for _ in range(DOWNLOADS_OF_ONE_MAX):
            stack.enter_context(downloads.slot(reader.id))
        refused = reader.get(f"{job}/results")
        assert (refused.status_code, code_of(refused)) == (429, "RATE_LIMITED")
    with ExitStack() as stack:
        for _ in range(DOWNLOADS_MAX):
            stack.enter_context(downloads.slot(uuid4()))
        refused = reader.get(f"{job}/results")
        assert (refused.status_code, code_of(refused)) == (503, "SERVICE_UNAVAILABLE")
    for _ in range(2 * DOWNLOADS_OF_ONE_MAX):
        assert reader.get(f"{job}/results").status_code == 200


@pytest.mark.parametrize("wanted", TYPES)
def test_what_is_erased_while_they_are_read_is_not_found(
    reader: Tenant, job: str, monkeypatch: pytest.MonkeyPatch, wanted: str
) -> None:
    opened, read = list[Sealed](), PersonalKeys.open

    def open_once(vault: PersonalKeys, owner: UUID, subject: UUID, sealed: Sealed) -> Any:
        """Open the numbers; the results have no key any more."""
        opened.append(sealed)
        return read(vault, owner, subject, sealed) if len(opened) == 1 else None

    monkeypatch.setattr(PersonalKeys, "open", open_once)
    assert code_of(reader.get(f"{job}/results?format={wanted}")) == "NOT_FOUND"
    assert len(opened) == 2


def test_they_are_there_before_the_read_model_has_the_job(still: Tenant) -> None:
    job_id = still.create_job(WANTED).json["data"]["job_id"]
    assert len(still.get(f"{BULK}/{job_id}/results").json["data"]) == len(WANTED)


def test_a_job_of_which_one_slice_is_done_is_processing(still: Tenant) -> None:
    job_id = still.create_job(WANTED).json["data"]["job_id"]
    path = f"/number-lookup/bulk/{job_id}"
    parts = still.service.container
    parts.bulk_lookup.work(UUID(job_id), 1)
    job = still.get(path).json["data"]
    assert (job["status"], job["processed_count"], job["failed_count"]) == ("processing", 3, 0)
    assert job["finished_at"] is None
    assert [item["phone_number"] for item in job["items"]] == WANTED
    states = [item["status"] for item in job["items"]]
    assert states == ["pending"] * SLICE_ITEMS + ["completed"] * 3
    assert still.get(path).headers["Retry-After"] == "1"
    parts.bulk_lookup.work(UUID(job_id), 0)
    done = still.get(path).json["data"]
    counts = [done[name] for name in ("status", "processed_count", "failed_count")]
    assert counts == ["completed", len(WANTED), 1]
    assert [item["phone_number"] for item in done["items"]] == WANTED


def test_the_log_and_the_table_show_the_same_job(still: Tenant) -> None:
    path = f"/number-lookup/bulk/{still.create_job(WANTED).json['data']['job_id']}"
    parts = still.service.container
    from_log = still.get(path)
    parts.projector.catch_up()
    from_table = still.get(path)
    assert from_log.json["data"] == from_table.json["data"]
    assert from_log.headers["ETag"] == from_table.headers["ETag"]
    parts.bulk_lookup.work(UUID(path.rpartition("/")[2]), 1)
    assert still.get(path).headers["ETag"] == from_table.headers["ETag"]
    parts.projector.catch_up()
    assert still.get(path).json["data"]["processed_count"] == 3


def test_a_job_of_the_most_numbers_that_a_setting_allows_fits_into_a_body(
    make_service: MakeService,
) -> None:
    most = 15_000
    tenant = make_service(BULK_NUMBERS_MAX=str(most)).tenant()
    longest = [f"+{100_000_000_000_000 + index}" for index in range(most + 1)]
    told = fields_of(tenant.create_job(longest))
    assert told == {"phone_numbers": ["Must hold 1 to 15000 numbers."]}
    reply = tenant.create_job(longest[:most])
    assert reply.status_code == 202
    assert reply.json["data"]["charge"]["amount"] == "75.00"
    path = f"/number-lookup/bulk/{reply.json['data']['job_id']}"
    lines = tenant.get(f"{path}/results?format=ndjson").text.splitlines()
    assert [json.loads(each)["phone_number"] for each in lines] == longest[:most]
    assert tenant.open("DELETE", path).json["data"]["cancelled_count"] == most
    assert tenant.balance() == "100.00"
