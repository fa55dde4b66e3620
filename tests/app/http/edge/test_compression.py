"""A reply of a kilobyte and more is compressed for whoever takes that, and reads the same."""

import zlib
from collections.abc import Iterator
from functools import partial
from gzip import decompress as gunzip

import pytest
from flask import Response
from werkzeug.test import EnvironBuilder
from werkzeug.wrappers import Request

from app.http.application import create_app
from app.http.edge import compression
from app.http.edge.compression import BYTES_MIN, Cached
from tests.app.http.service import Service, Tenant, body_of

GZIP = {"Accept-Encoding": "gzip"}
PAGE = "/docs/errors"
ASKING = Request(EnvironBuilder(headers=GZIP).get_environ())
TAKES = "gzip|GZip|br, gzip|gzip;q=0.001|*|gzip, *;q=0|gzip, identity;q=0|x-gzip"
TAKES += "|gzip;q=0.5, identity;q=0.5|gzip;q=.4, identity;q=.3|gzip, gzip;q=0"
TAKES_NOT = "|identity|br, deflate|gzip;q=0|*;q=0|gzip;q=0, *|gzip;q=0.4, identity;q=0.5"
TAKES_NOT += "|gzip;q=0.4, *;q=0.5|gzip;q=.4, identity;q=.5"


def test_the_client_says_whether_a_reply_is_compressed(service: Service) -> None:
    bare = service.client.get(PAGE)
    asked: dict[str | None, bool] = {None: False, **dict.fromkeys(TAKES.split("|"), True)}
    for accepted, takes in {**asked, **dict.fromkeys(TAKES_NOT.split("|"), False)}.items():
        headers = {} if accepted is None else {"Accept-Encoding": accepted}
        reply = service.client.get(PAGE, headers=headers)
        assert (reply.headers.get("Content-Encoding") == "gzip") is takes, accepted
        assert reply.headers["Vary"] == "Accept-Encoding"
        assert reply.headers["Content-Length"] == str(len(reply.data))
        assert body_of(reply) == bare.data
        tag = {"If-None-Match": bare.headers["ETag"], **headers}
        same = service.client.get(PAGE, headers=tag)
        assert (same.status_code, same.data, reply.headers["ETag"]) == (
            304,
            b"",
            tag["If-None-Match"],
        )
        assert same.headers["Vary"] == "Accept-Encoding"
        assert "Content-Encoding" not in same.headers
    assert bare.headers["ETag"].startswith("W/"), "it stands for both forms"
    head = service.client.head(PAGE, headers=GZIP)
    assert (head.status_code, head.data, head.headers["Content-Encoding"]) == (200, b"", "gzip")
    assert 0 < int(head.headers["Content-Length"]) < len(bare.data)


def test_compression_begins_at_a_kilobyte(service: Service) -> None:
    app, sizes = create_app(service.container), (BYTES_MIN - 1, BYTES_MIN)
    for size in sizes:
        app.add_url_rule(f"/{size}", f"of {size}", partial(Response, b"x" * size))
    app.add_url_rule("/stream", "stream", lambda: Response(iter([b"x"])))
    found = [app.test_client().get(f"/{it}", headers=GZIP).headers for it in (*sizes, "stream")]
    assert ["Content-Encoding" in each for each in found] == [False, True, True]


def test_an_error_is_compressed_too(acme: Tenant) -> None:
    wrong = {"phone_numbers": ["x"] * 50}
    reply = acme.post("/number-lookup/bulk", json=wrong, headers=GZIP)
    assert (reply.status_code, reply.headers["Vary"]) == (422, "Accept-Encoding")
    assert reply.headers["Content-Encoding"] == "gzip"
    assert b"phone_numbers.49" in body_of(reply)


def test_what_is_kept_is_compressed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    kept = Cached(b"x" * BYTES_MIN)
    packed = kept.packed
    monkeypatch.setattr(compression, "zlib", None)  # Whoever compresses it again fails.
    reply = Response(kept)
    compression.encode(reply, ASKING)
    assert reply.data is packed
    assert gunzip(packed) == kept


def test_a_stream_is_read_block_by_block() -> None:
    sent: list[int] = []

    def rows() -> Iterator[bytes]:
        for number in range(3):
            sent.append(number)
            yield b"%d,+14155550100\r\n" % number * 100

    reply = Response(rows())
    compression.encode(reply, ASKING)
    assert "Content-Length" not in reply.headers
    reader, read = zlib.decompressobj(wbits=31), b""
    for block in reply.response:
        read += reader.decompress(block)
        if sent:
            assert read.endswith(b"%d,+14155550100\r\n" % sent[-1])
    assert reader.eof
    assert read == b"".join(rows())


@pytest.mark.parametrize("blocks", [[], [b""], [b"x" * 5000], [b"a" * 10, b"b" * 5000, b"c", b""]])
def test_blocks_become_one_file_of_gzip(blocks: list[bytes]) -> None:
    packed = b"".join(compression.gzip(blocks))
    reader = zlib.decompressobj(wbits=31)
    assert reader.decompress(packed) == b"".join(blocks)
    assert reader.eof
    assert reader.unused_data == b"", "many clients read the first file only"


def test_the_length_of_a_reply_does_not_tell_what_is_in_it() -> None:
    lengths = {len(b"".join(compression.gzip([b"x" * 5000]))) for _ in range(100)}
    assert len(lengths) > 20
