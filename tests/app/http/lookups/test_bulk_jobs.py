"""Bulk jobs over HTTP: accepted, polled, ended."""

import json

import pytest

from tests.app.http.conftest import MakeService
from tests.app.http.service import Tenant, fields_of

NUMBERS = ["+971508245915", "+14155552671", "+9991234567"]


class TestValidators:
    """Conditional reads of a job."""

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
