"""What a body may be: at most 1 MiB of strict JSON, or nothing."""

import gzip
import json

from app.http.edge.input import BODY_BYTES_MAX
from tests.app.http.service import Tenant, code_of, fields_of

JSON = {"Content-Type": "application/json"}
BULK = "/number-lookup/bulk"

NOT_JSON = {
    "words": b"hello",
    "cut short": b'{"phone_numbers": ["+14155552671"',
    "single quotes": b"{'phone_numbers': []}",
    "a comment": b'{"phone_numbers": []} // none',
    "an infinity": b'{"phone_numbers": [-Infinity]}',
    "UTF-16": '{"phone_numbers": []}'.encode("utf-16"),
    "two byte order marks": b'\xef\xbb\xbf\xef\xbb\xbf{"phone_numbers": []}',
    "a lone surrogate as a name": b'{"\\ud800": 1}',
    "lists without end": b"[" * 200_000,
    "deep objects": b'{"a":' * 100_000 + b"1" + b"}" * 100_000,
    "a number too long to read": b"[" + b"9" * 10_000 + b"]",
}


def test_a_body_that_is_not_json_is_a_400(acme: Tenant) -> None:
    for name, body in NOT_JSON.items():
        reply = acme.post(BULK, data=body, headers=JSON)
        assert (reply.status_code, code_of(reply)) == (400, "BAD_REQUEST"), name
        assert code_of(acme.get("/v1/wallet", data=body, headers=JSON)) == "BAD_REQUEST", name


def test_a_compressed_body_is_a_415_and_one_over_a_mebibyte_a_413(acme: Tenant) -> None:
    body = gzip.compress(json.dumps({"phone_numbers": ["+14155552671"]}).encode())
    reply = acme.post(BULK, data=body, headers={**JSON, "Content-Encoding": "gzip"})
    assert code_of(reply) == "UNSUPPORTED_MEDIA_TYPE"
    fits = b'{"phone_numbers": []' + b" " * (BODY_BYTES_MAX - 21) + b"}"
    assert len(fits) == BODY_BYTES_MAX
    assert list(fields_of(acme.post(BULK, data=fits, headers=JSON))) == ["phone_numbers"]
    reply = acme.post(BULK, data=fits + b" ", headers=JSON)
    assert (reply.status_code, code_of(reply)) == (413, "PAYLOAD_TOO_LARGE")


def test_a_body_that_says_nothing_is_none_and_one_that_says_something_is_an_object(
    acme: Tenant,
) -> None:
    mark, number = b"\xef\xbb\xbf", b'{"phone_number": "+14155552671"}'
    assert acme.post("/number-lookup", data=mark + number, headers=JSON).status_code == 200
    there = "/number-lookup?phone_number=%2B14155552671"
    for nothing in (b"null", b"[]", b'""', b" \r\n", b" null ", mark, mark + b"[ ]"):
        assert acme.post(there, data=nothing, headers=JSON).status_code == 200
        reply = acme.post("/number-lookup", data=nothing, headers=JSON)
        assert fields_of(reply) == {"phone_number": ["Missing data for required field."]}
        assert acme.get("/v1/plans/no-id", data=nothing, headers=JSON).status_code == 404
    for something in (b"0", b"false", b"[null]", b"[{}]", b'"null"'):
        assert [*fields_of(acme.post(there, data=something, headers=JSON))] == ["body"]


def test_a_whole_number_may_be_written_with_a_point(acme: Tenant) -> None:
    number = {"phone_number": "+14155552671"}
    sent = [
        {"json": {**number, "max_age": 725.0}},
        {"query_string": {**number, "max_age": "725.0"}},
    ]
    for each in sent:
        assert acme.post("/number-lookup", **each).status_code == 200
    for wrong in (725.5, True, "725", 1e300):
        reply = acme.post("/number-lookup", json={**number, "max_age": wrong})
        assert [*fields_of(reply)] == ["max_age"]
    page = acme.get("/v1/transactions?per_page=2.00&page=1.0").json["data"]["meta"]
    assert (page["per_page"], page["current_page"]) == (2, 1)
    for wrong in ("2.5", "2.", ".0", "2.0.0"):
        assert acme.get(f"/v1/transactions?per_page={wrong}").status_code == 422
