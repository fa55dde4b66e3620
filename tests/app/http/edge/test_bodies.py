"""What a body may be: at most 1 MiB of strict JSON, or nothing."""

import gzip
import json

import pytest

from app.http.edge.input import BODY_BYTES_MAX
from tests.app.http.service import Tenant, code_of, fields_of

pytestmark = pytest.mark.any_database

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
    "white space": b"   ",
    "a number too long to read": b"[" + b"9" * 10_000 + b"]",
}


def test_a_body_that_is_not_json_is_a_400(acme: Tenant) -> None:
    for name, body in NOT_JSON.items():
        reply = acme.post(BULK, data=body, headers=JSON)
        assert (reply.status_code, code_of(reply)) == (400, "BAD_REQUEST"), name


def test_a_compressed_body_is_a_415(acme: Tenant) -> None:
    body = gzip.compress(json.dumps({"phone_numbers": ["+14155552671"]}).encode())
    reply = acme.post(BULK, data=body, headers={**JSON, "Content-Encoding": "gzip"})
    assert code_of(reply) == "UNSUPPORTED_MEDIA_TYPE"


def test_a_body_over_one_mebibyte_is_a_413(acme: Tenant) -> None:
    fits = b'{"phone_numbers": []' + b" " * (BODY_BYTES_MAX - 21) + b"}"
    assert len(fits) == BODY_BYTES_MAX
    assert list(fields_of(acme.post(BULK, data=fits, headers=JSON))) == ["phone_numbers"]
    reply = acme.post(BULK, data=fits + b" ", headers=JSON)
    assert (reply.status_code, code_of(reply)) == (413, "PAYLOAD_TOO_LARGE")


@pytest.mark.parametrize(
    ("body", "status"), [(b'{"phone_number": "+14155552671"}', 200), (b"", 422)]
)
def test_a_byte_order_mark_before_json_is_skipped(acme: Tenant, body: bytes, status: int) -> None:
    reply = acme.post("/number-lookup", data=b"\xef\xbb\xbf" + body, headers=JSON)
    assert reply.status_code == status
