"""One line per request, and never a number, a token or a secret in any line."""

import logging
from base64 import b64encode

import pytest

from tests.app.http.conftest import MakeService
from tests.app.http.service import Service, Tenant
from tests.app.watch.test_metrics import scrape

NUMBER = "+971508245977"
CANARIES = (NUMBER, NUMBER[1:], "s3cret-canary", "path-canary", "key-canary")


def lines(caplog: pytest.LogCaptureFixture) -> list[logging.LogRecord]:
    return [record for record in caplog.records if record.name == "app.http.access"]


def test_a_request_is_one_line_and_one_count_with_its_facts_one_of_nobody_for_nothing_too(
    make_service: MakeService, caplog: pytest.LogCaptureFixture
) -> None:
    service = make_service(METRICS_PORT="9090")
    acme = service.tenant()
    caplog.set_level(logging.INFO, "app.http.access")
    acme.get(f"/v1/transactions/{NUMBER}?page=1", headers={"X-Request-Id": "log-me"})
    service.client.open("/path-canary", method="BREW")
    one, other = (vars(record) for record in lines(caplog))
    facts = ("method", "route", "status", "request_id", "organization_id")
    told = ["GET", "/v1/transactions/<transaction_id>", 404, "log-me", str(acme.id)]
    assert [one[name] for name in facts] == told
    shown, place = scrape(service.container), f'route="{told[1]}"'
    assert shown[f'http_requests_total{{method="GET",{place},status="404"}}'] == 1
    assert shown[f"http_request_duration_seconds_sum{{{place}}}"] == one["duration_ms"] / 1000
    assert [other[name] for name in facts if name != "request_id"] == ["-", "-", 404, "-"]


def test_no_line_holds_what_must_not_be_logged(
    service: Service, acme: Tenant, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    token = acme.headers["Authorization"].removeprefix("Bearer ")
    basic = b64encode(b"cl:s3cret-canary").decode()
    acme.look_up(NUMBER, **{"Idempotency-Key": "key-canary"})
    acme.look_up(f"{NUMBER}x")
    acme.look_up(NUMBER, **{"Idempotency-Key": "key canary"})
    acme.finished_job([NUMBER, "+15005550001"])
    acme.post("/number-lookup", data=NUMBER, headers={"Content-Type": "application/json"})
    acme.post("/number-lookup", json={NUMBER: NUMBER})
    acme.get(f"/path-canary/{NUMBER}?phone_number={NUMBER}")
    service.client.get("/v1/wallet", headers={"Authorization": f"Bearer {token}x"})
    service.client.get("/v1/wallet", query_string={"access_token": token})
    service.client.post("/auth/token", data={"client_id": "a", "client_secret": "s3cret-canary"})
    service.client.post(
        "/auth/token",
        data={"grant_type": "client_credentials"},
        headers={"Authorization": f"Basic {basic}"},
    )
    written = [f"{record.getMessage()} {vars(record)}" for record in caplog.records]
    assert len(lines(caplog)) >= 11
    assert len(written) > len(lines(caplog))
    for canary in (*CANARIES, token, basic, token.split(".")[2]):
        assert not [line for line in written if canary in line], canary
