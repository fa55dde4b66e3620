"""Bulk jobs over HTTP: accepted, polled, ended."""

import json

from tests.app.http.conftest import MakeService
from tests.app.http.service import fields_of


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
