"""What a reply costs and holds is bounded, however much was sent."""

import json
import time
from typing import Any

import pytest

from app.http.edge.request import SHORT_HEADER_CHARS_MAX
from tests.app.http.edge.test_isolation import Case, ask, case_of, credentials_of, operations
from tests.app.http.service import Service, Tenant, fields_of
from tests.installation import numbers

JSON = {"Content-Type": "application/json"}
REPLY_BYTES_MAX = 16 * 1024
# Of the thread that answers; each of these took from 0.1 s to 40 s before they were bounded.
CPU_S_MAX = 0.25  # What is quadratic costs seconds.
TRIES_MAX = 5  # What one costs, a crowded machine can only add to: the least is what counts.
TOO_MANY = {"body": ["No object may have more than 100 members."]}


@pytest.fixture(scope="module")
def with_a_body(service: Service, acme: Tenant) -> list[Case]:
    """Return each operation with a body, be it an empty object."""
    found = [each for each in operations(service) if each.group.scope is not None]
    changes = [each for each in found if each.line.startswith(("POST", "PUT", "PATCH"))]
    return [case_of(each, acme) for each in changes]


def test_an_object_of_many_members_is_one_problem_of_every_operation(
    acme: Tenant, with_a_body: list[Case]
) -> None:
    body = "{" + '"":1,' * 150_000 + '"":1}'
    assert len(with_a_body) > 14
    for case in with_a_body:
        assert fields_of(ask(acme, case, data=body, headers=JSON)) == TOO_MANY, case


MANY = json.dumps({f"m{number}": 1 for number in range(101)})


def test_members_are_counted_at_any_depth_and_below_the_bound_are_read(acme: Tenant) -> None:
    for body in (
        MANY,
        f'{{"phone_numbers": {MANY}}}',
        f'{{"phone_numbers": [[{{"a": {{}}, "b": {MANY}}}]]}}',
    ):
        reply = acme.post("/number-lookup/bulk", data=body, headers=JSON)
        assert fields_of(reply) == TOO_MANY
    full = {"a": {str(number): 1 for number in range(100)}}
    told = fields_of(acme.post("/number-lookup/bulk", json={"phone_numbers": full}))
    assert all(name.startswith("phone_numbers") for name in told)


@pytest.mark.parametrize("letter", ["\U0001f600", "\x00"])
def test_other_problems_are_few_and_short(
    acme: Tenant, with_a_body: list[Case], letter: str
) -> None:
    body = {f"{number:02}{letter * 400}": 1 for number in range(100)}
    query = "&".join(f"{number}{'%F0%9F%98%80' * 100}" for number in range(40))
    for case in with_a_body:
        for more in ("", f"?{query}"):
            reply = ask(acme, case, path=case.path() + more, json=body)
            told = fields_of(reply)
            assert len(reply.data) < REPLY_BYTES_MAX, (case, len(reply.data))
            assert sum(map(len, told.values())) == 20, case
            assert max(map(len, told)) == 64, case
            assert "\x00" not in "".join(told)
            assert len(reply.json["message"]) < 200


def test_all_problems_of_a_list_of_numbers_are_told(acme: Tenant) -> None:
    wrong = [f"0{number}" for number in range(1_000)]
    more = {f"m{number}": 1 for number in range(50)}
    told = fields_of(acme.post("/number-lookup/bulk", json={"phone_numbers": wrong, **more}))
    assert [*told][:1_000] == [f"phone_numbers.{index}" for index in range(1_000)]
    assert len(told) == 1_020
    named_alike = {f"phone_numbers.{number}": 1 for number in range(90)}
    reply = acme.post("/number-lookup/bulk", json={"phone_numbers": numbers(1), **named_alike})
    assert len(fields_of(reply)) == 20


COSTLY: dict[str, dict[str, Any]] = {
    "members": {"path": "/v1/webhooks", "data": b"{" + b'"":1,' * 200_000 + b'"":1}'},
    "objects": {"path": "/v1/webhooks", "data": b'{"a":[' + b'{"":1},' * 14_000 + b"1]}"},
    "a quote without an end": {"path": "/v1/links", "headers": {"Prefer": '"' + '\\"' * 32_000}},
    "quotes": {"path": "/v1/links", "headers": {"Prefer": '"' + '\\"' * 2_000}},
    "types": {"method": "GET", "path": "/v1/transactions", "headers": {"Accept": "a/b," * 16_000}},
    "codings": {"method": "GET", "path": "/docs", "headers": {"Accept-Encoding": "a," * 32_000}},
    "parameters": {"path": "/number-lookup?" + "a&" * 32_000},
    "a name": {"path": "/v1/links", "json": {"name": "a" * 1_000_000}},
    "a form": {
        "path": "/auth/token",
        "data": b"grant_type=client_credentials&client_id=" + b"%41" * 340_000,
        "content_type": "application/x-www-form-urlencoded",
    },
}


@pytest.mark.parametrize("name", COSTLY)
def test_no_request_costs_much(acme: Tenant, name: str) -> None:
    sent = {**COSTLY[name]}
    if "data" in sent and "content_type" not in sent:
        sent["headers"] = JSON
    acme.get("/docs")  # The pages are made when the first one is read.
    took_s = list[float]()
    while len(took_s) < TRIES_MAX and min(took_s, default=CPU_S_MAX) >= CPU_S_MAX:
        started_s = time.thread_time()
        reply = acme.open(**{"method": "POST", **sent})
        took_s.append(time.thread_time() - started_s)
        assert reply.status_code in {200, 400, 422}
    assert min(took_s) < CPU_S_MAX


def test_a_header_that_is_too_long_counts_as_not_sent(acme: Tenant) -> None:
    for chars, status in ((SHORT_HEADER_CHARS_MAX, 406), (SHORT_HEADER_CHARS_MAX + 1, 200)):
        reply = acme.get("/v1/transactions", headers={"Accept": "image/png".ljust(chars, ",")})
        assert reply.status_code == status


def test_a_token_form_of_many_parameters_is_one_problem(service: Service, acme: Tenant) -> None:
    form = credentials_of(acme) | {f"m{number}": "1" for number in range(50_000)}
    for sent in (form, credentials_of(acme) | {"scope": "lookup " * 10_000}):
        reply = service.client.post("/auth/token", data=sent)
        assert (reply.status_code, reply.json["error"]) == (400, "invalid_request")
        assert len(reply.data) < 200
