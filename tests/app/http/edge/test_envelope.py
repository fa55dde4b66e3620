"""Every reply has the envelope, an id, and headers that keep it safe."""

import re
from uuid import UUID

import pytest

from tests.app.http.service import Service, Tenant, code_of

pytestmark = pytest.mark.any_database

TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")


def test_a_success_has_data_and_meta(acme: Tenant) -> None:
    body = acme.get("/v1/wallet").json
    assert body.keys() == {"success", "data", "meta"}
    assert body["success"] is True
    assert body["meta"].keys() == {"timestamp", "response_time_ms", "request_id"}
    assert TIME.fullmatch(body["meta"]["timestamp"])
    assert 0 <= body["meta"]["response_time_ms"] < 10_000


def test_an_error_has_code_message_and_meta_and_no_empty_details(acme: Tenant) -> None:
    body = acme.get("/v1/transactions/none").json
    assert body.keys() == {"success", "error", "meta"}
    assert body["error"] == {"code": "NOT_FOUND", "message": "The resource does not exist."}
    assert TIME.fullmatch(body["meta"]["timestamp"])


@pytest.mark.parametrize(
    "given",
    [
        "a",
        "4f.x_y~z:1/2@3=4+5-6",
        "r" * 128,
        "req-00f067aa-0ba9-42b7-9a2c-123456789012",
        "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
        "2026-11-26T12:00:00.000Z",
    ],
)
def test_a_request_id_is_sent_back(acme: Tenant, given: str) -> None:
    reply = acme.get("/v1/wallet", headers={"X-Request-Id": given})
    assert reply.headers["X-Request-Id"] == given
    assert reply.json["meta"]["request_id"] == given


@pytest.mark.parametrize(
    "given",
    [
        "",
        "r" * 129,
        "two words",
        'quo"te',
        "tab\tbed",
        "é",
        "a,b",
        "+447400123456",
        "8944100000000000017",
        "cls_" + "x" * 43,
        "eyJhbGciOiJFUzI1NiJ9.e30.c2ln",
        "signup-+447400123456",
        "signup-+44-7400-123456",
        "tel:447400123456",
        "sim/8944100000000000017",
        "imsi=234151234567890",
        "LPA:1-smdp.example-ABC",
        "my-opk_" + "x" * 43,
        "key=whsec_" + "x" * 43,
        "t:eyJhbGciOiJFUzI1NiJ9.e30.c2ln",
    ],
)
def test_an_unsafe_request_id_is_replaced(acme: Tenant, given: str) -> None:
    reply = acme.get("/v1/wallet", headers={"X-Request-Id": given})
    made = reply.headers["X-Request-Id"]
    assert str(UUID(made)) == made == reply.json["meta"]["request_id"]


def test_the_request_id_is_stored_with_what_the_request_causes(acme: Tenant) -> None:
    log = acme.service.container.log
    before = log.head()
    acme.look_up("+14155552671", **{"X-Request-Id": "cause-of-it-all"})
    caused = {recorded.event.request_id for recorded in log.read(before, 10)}
    assert caused == {"cause-of-it-all"}


@pytest.mark.parametrize(
    "path", ["/nope", "/v1", "/v1/wallet/", "/v1//wallet", "/docs/none.js", "/number-lookup/bulk/"]
)
def test_an_unknown_path_is_a_json_404(acme: Tenant, path: str) -> None:
    reply = acme.get(path)
    assert (reply.status_code, reply.mimetype) == (404, "application/json")
    assert code_of(reply) == "NOT_FOUND"


@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [
        ("PUT", "/v1/wallet", {"GET", "HEAD"}),
        ("OPTIONS", "/v1/wallet", {"GET", "HEAD"}),
        ("BREW", "/v1/wallet", {"GET", "HEAD"}),
        ("GET", "/number-lookup", {"POST"}),
        ("PUT", "/number-lookup/bulk", {"GET", "HEAD", "POST"}),
        ("DELETE", "/number-lookup/health", {"GET", "HEAD"}),
    ],
)
def test_a_wrong_method_is_a_405_that_says_which_are_right(
    service: Service, method: str, path: str, allowed: set[str]
) -> None:
    reply = service.client.open(path, method=method)
    assert reply.status_code == 405
    assert {each.strip() for each in reply.headers["Allow"].split(",")} == allowed
    if method != "HEAD":
        assert code_of(reply) == "METHOD_NOT_ALLOWED"


@pytest.mark.parametrize("path", ["/v1/wallet", "/v1/transactions/none", "/livez", "/docs"])
def test_head_answers_like_get_without_the_body(acme: Tenant, path: str) -> None:
    head, get = acme.open("HEAD", path), acme.get(path)
    assert head.data == b""
    assert head.status_code == get.status_code
    assert head.headers["Content-Type"] == get.headers["Content-Type"]


@pytest.mark.parametrize("path", ["/v1/wallet", "/nope", "/livez", "/readyz", "/number-lookup"])
def test_no_reply_may_be_stored_or_guessed_at(acme: Tenant, path: str) -> None:
    reply = acme.get(path)
    assert reply.headers["Cache-Control"] == "no-store"
    assert reply.headers["X-Content-Type-Options"] == "nosniff"


@pytest.mark.parametrize("host", ["a b", "", "[::1", "a:b:c", "é", "a" * 5000])
def test_an_odd_host_is_answered_in_json(service: Service, host: str) -> None:
    reply = service.client.get("/livez", headers={"Host": host})
    assert reply.status_code in {200, 400}
    assert reply.mimetype == "application/json"
