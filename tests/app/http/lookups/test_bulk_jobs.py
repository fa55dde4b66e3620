"""Bulk jobs over HTTP: accepted, polled, ended."""

import json
from pathlib import Path
from uuid import UUID

import pytest

from app.http.lookups.input import NOT_A_STRING, NOT_E164
from domain.lookups.bulk_job import BulkJob
from tests.app.http.conftest import MakeService
from tests.app.http.service import Service, Tenant, code_of, fields_of
from tests.support.erasing import erase_months

NUMBERS = ["+971508245915", "+14155552671", "+9991234567"]
DOWN = "+15005550001"
FIXTURE = Path(__file__).parents[3] / "data" / "numbers.json"


def test_a_job_is_accepted_paid_and_readable_at_once(make_service: MakeService) -> None:
    tenant = make_service().tenant()
    reply = tenant.create_job(NUMBERS)
    assert reply.status_code == 202
    told = reply.json["data"]
    job_id, charge = told["job_id"], told.pop("charge")
    assert told == {"job_id": job_id}
    money = {"amount": "0.015", "currency": "USD", "refunded": "0.00"}
    assert charge == {"transaction_id": charge["transaction_id"], **money}
    assert reply.headers["Location"] == f"https://api.example/number-lookup/bulk/{job_id}"
    assert reply.headers["Retry-After"] == "1"
    read = tenant.get(f"/number-lookup/bulk/{job_id}")
    assert read.status_code == 200
    assert read.headers["Retry-After"] == "1"
    job = read.json["data"]
    assert job.pop("created_at").endswith("Z")
    assert job == {
        "job_id": job_id,
        "status": "pending",
        "total_count": 3,
        "processed_count": 0,
        "failed_count": 0,
        "cancelled_count": 0,
        "charge": charge,
        "finished_at": None,
        "items": [
            {"phone_number": number, "status": "pending", "result": None, "error": None}
            for number in NUMBERS
        ],
    }


def test_a_job_runs_to_its_end(service: Service) -> None:
    tenant = service.tenant()
    job = tenant.finished_job(NUMBERS)
    assert (job["status"], job["processed_count"], job["failed_count"]) == ("completed", 3, 0)
    assert job["finished_at"] >= job["created_at"]
    assert [item["phone_number"] for item in job["items"]] == NUMBERS
    assert {item["status"] for item in job["items"]} == {"completed"}
    assert {item["error"] for item in job["items"]} == {None}
    assert job["items"][2]["result"] == {"phone_number": NUMBERS[2], "valid": False}
    assert job["items"][0]["result"] == tenant.look_up(NUMBERS[0]).json["data"]


def test_a_failed_item_says_why_and_is_refunded(service: Service) -> None:
    tenant = service.tenant(balance="1.00")
    job = tenant.finished_job([NUMBERS[0], DOWN])
    assert (job["status"], job["processed_count"], job["failed_count"]) == ("completed", 2, 1)
    failed = job["items"][1]
    assert (failed["status"], failed["result"]) == ("failed", None)
    assert failed["error"] == "The lookup service is unavailable."
    assert tenant.balance() == "0.995"


@pytest.mark.any_database
def test_a_job_whose_items_all_fail_has_failed(service: Service) -> None:
    tenant = service.tenant(balance="1.00")
    assert tenant.finished_job([DOWN])["status"] == "failed"
    assert tenant.balance() == "1.00"


@pytest.mark.any_database
def test_a_terminal_job_asks_nobody_to_come_back(acme: Tenant) -> None:
    job = acme.finished_job(NUMBERS)
    reply = acme.get(f"/number-lookup/bulk/{job['job_id']}")
    assert "Retry-After" not in reply.headers


def test_a_thousand_numbers_are_a_job(service: Service) -> None:
    numbers = json.loads(FIXTURE.read_text("utf-8"))["phone_numbers"][:1000]
    tenant = service.tenant()
    job = tenant.finished_job(numbers)
    assert [item["phone_number"] for item in job["items"]] == numbers
    assert [item["result"]["phone_number"] for item in job["items"]] == numbers
    assert tenant.balance() == "95.00"


class TestValidators:
    """Conditional reads of a job."""

    @pytest.mark.any_database
    def test_an_unchanged_job_is_a_304(self, acme: Tenant) -> None:
        job = acme.finished_job(NUMBERS)
        path = f"/number-lookup/bulk/{job['job_id']}"
        first = acme.get(path)
        tag = first.headers["ETag"]
        assert tag.startswith('W/"')
        replies = [
            acme.get(path, headers={"If-None-Match": named})
            for named in (tag, f'"other", {tag}', tag.removeprefix("W/"), "*")
        ]
        for reply in replies:
            assert (reply.status_code, reply.data) == (304, b"")
            assert reply.headers["ETag"] == tag
        for reply in (first, *replies):
            assert reply.headers["Cache-Control"] == "private, no-cache"
            assert reply.headers["Vary"] == "Authorization, X-Organization-Id, Accept-Encoding"
            assert reply.headers["X-Request-Id"]

    @pytest.mark.any_database
    def test_who_has_the_summary_does_not_have_the_items(self, acme: Tenant) -> None:
        path = f"/number-lookup/bulk/{acme.finished_job(NUMBERS)['job_id']}"
        summary = f"{path}?fields=summary"
        tag = acme.get(summary).headers["ETag"]
        assert acme.get(summary, headers={"If-None-Match": tag}).status_code == 304
        assert acme.get(path, headers={"If-None-Match": tag}).json["data"]["items"]

    def test_a_304_of_a_running_job_keeps_retry_after(self, make_service: MakeService) -> None:
        tenant = make_service().tenant()
        path = f"/number-lookup/bulk/{tenant.create_job(NUMBERS).json['data']['job_id']}"
        tag = tenant.get(path).headers["ETag"]
        reply = tenant.get(path, headers={"If-None-Match": tag})
        assert (reply.status_code, reply.headers["Retry-After"]) == (304, "1")
        assert "Content-Type" not in reply.headers

    @pytest.mark.any_database
    @pytest.mark.parametrize("named", ['"other"', "other", "", 'W/"'])
    def test_another_tag_gets_the_job(self, acme: Tenant, named: str) -> None:
        path = f"/number-lookup/bulk/{acme.finished_job(NUMBERS)['job_id']}"
        assert acme.get(path, headers={"If-None-Match": named}).status_code == 200

    def test_progress_changes_the_tag(self, service: Service) -> None:
        tenant = service.tenant()
        path = f"/number-lookup/bulk/{tenant.create_job([DOWN]).json['data']['job_id']}"
        tag = tenant.get(path).headers["ETag"]
        headers = {"If-None-Match": tag}
        service.until(lambda: tenant.get(path, headers=headers).status_code == 200)
        assert tenant.get(path).headers["ETag"] != tag


@pytest.mark.any_database
@pytest.mark.parametrize(
    "job_id",
    ["8c1f0c7e-5b1f-4a5e-8a44-0f6f6f0e2d11", "none", "0", "8C1F", "{8c1f0c7e}", "%00", "a" * 5000],
)
def test_a_job_that_does_not_exist_is_a_404(acme: Tenant, job_id: str) -> None:
    reply = acme.get(f"/number-lookup/bulk/{job_id}")
    assert (reply.status_code, code_of(reply)) == (404, "NOT_FOUND")


@pytest.mark.any_database
def test_the_id_of_something_else_is_a_404(acme: Tenant) -> None:
    lookup_id = acme.look_up(NUMBERS[0]).json["meta"]["lookup_id"]
    assert acme.get(f"/number-lookup/bulk/{lookup_id}").status_code == 404


@pytest.mark.any_database
@pytest.mark.parametrize("spelling", ["{%s}", "urn:uuid:%s", " %s", "%s%%20"])
def test_an_id_has_one_spelling(acme: Tenant, spelling: str) -> None:
    job_id = acme.finished_job(NUMBERS)["job_id"]
    for text in (spelling % job_id, job_id.replace("-", "")):
        assert acme.get(f"/number-lookup/bulk/{text}").status_code == 404


@pytest.mark.any_database
def test_an_id_in_capitals_is_the_same_id(acme: Tenant) -> None:
    job_id = acme.finished_job(NUMBERS)["job_id"]
    assert acme.get(f"/number-lookup/bulk/{job_id.upper()}").status_code == 200


@pytest.mark.any_database
@pytest.mark.parametrize("body", [{}, {"phone_numbers": None}, {"phone_numbers": "+14155552671"}])
def test_numbers_that_are_no_list_are_refused(acme: Tenant, body: dict[str, object]) -> None:
    assert list(fields_of(acme.post("/number-lookup/bulk", json=body))) == ["phone_numbers"]


@pytest.mark.any_database
@pytest.mark.parametrize("numbers", [[], [f"+1415555{n:04}" for n in range(1001)], ["x"] * 1001])
def test_too_few_and_too_many_are_refused_as_a_whole(acme: Tenant, numbers: list[str]) -> None:
    assert fields_of(acme.create_job(numbers)) == {
        "phone_numbers": ["Must hold 1 to 1000 numbers."]
    }


def test_the_maximum_is_a_setting(make_service: MakeService) -> None:
    tenant = make_service(BULK_NUMBERS_MAX="2").tenant()
    assert tenant.create_job(NUMBERS[:2]).status_code == 202
    assert fields_of(tenant.create_job(NUMBERS)) == {"phone_numbers": ["Must hold 1 to 2 numbers."]}


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


@pytest.mark.any_database
def test_every_wrong_entry_is_named_by_its_index(acme: Tenant) -> None:
    numbers = [NUMBERS[0], "garbage", 3, NUMBERS[0], None, "garbage", [NUMBERS[0]], NUMBERS[1]]
    same = ["The same number stands at index 0."]
    assert fields_of(acme.create_job(numbers)) == {
        "phone_numbers.1": [NOT_E164],
        "phone_numbers.2": [NOT_A_STRING],
        "phone_numbers.3": same,
        "phone_numbers.4": [NOT_A_STRING],
        "phone_numbers.5": [NOT_E164],
        "phone_numbers.6": [NOT_A_STRING],
    }


@pytest.mark.any_database
def test_all_of_a_thousand_wrong_entries_are_named(acme: Tenant) -> None:
    assert len(fields_of(acme.create_job(["x"] * 1000))) == 1000


@pytest.mark.any_database
def test_a_job_that_cannot_be_paid_is_not_made(service: Service) -> None:
    reply = service.tenant(balance="0.01").create_job(NUMBERS)
    assert (reply.status_code, code_of(reply)) == (402, "INSUFFICIENT_BALANCE")
    assert reply.json["error"]["details"]["required"] == "0.015"
    walletless = service.tenant(balance=None).create_job(NUMBERS)
    assert (walletless.status_code, code_of(walletless)) == (403, "BILLING_NOT_CONFIGURED")


@pytest.mark.any_database
def test_a_job_without_a_price_needs_no_wallet(service: Service) -> None:
    assert service.tenant(balance=None, price="0").finished_job(NUMBERS)["status"] == "completed"


@pytest.mark.any_database
def test_an_accepted_job_ends_though_its_organization_is_suspended(service: Service) -> None:
    tenant = service.tenant()
    job_id = tenant.create_job(NUMBERS).json["data"]["job_id"]
    tenant.set_status("suspended")
    log = service.container.log
    service.until(lambda: log.get(BulkJob, UUID(job_id)).finished_at is not None)


def test_an_erased_job_is_a_404(make_service: MakeService) -> None:
    service = make_service()
    tenant = service.tenant()
    path = f"/number-lookup/bulk/{tenant.create_job(NUMBERS).json['data']['job_id']}"
    tag = tenant.get(path).headers["ETag"]
    erase_months(service.container.vault, "9999-12")
    for headers in ({}, {"If-None-Match": tag}):  # Nor does it stay good for who has read it.
        assert code_of(tenant.get(path, headers=headers)) == "NOT_FOUND"
