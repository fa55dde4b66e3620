"""Over a real socket: what the server reads and what it refuses, before an application."""

import re
import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from http.client import HTTPConnection

import pytest

from app.http.docs import DOCUMENT
from app.http.edge.input import BODY_BYTES_MAX
from app.http.server import connection as server
from app.security.authorization import HEADER_TWICE
from tests.app.http.conftest import MakeService
from tests.app.http.described import described, differences
from tests.app.http.over_http import HOST, Answer, read_all, received, request, send, serving
from tests.app.http.service import Service, Tenant

BULK = "POST /number-lookup/bulk HTTP/1.1"
NUMBERS = b'{"phone_numbers": ["+14155552671"]}'
JSON = {"Content_Type": "application/json"}
CHUNKED = {"Transfer_Encoding": "chunked", **JSON}
ALIVE = b"GET /livez HTTP/1.1\r\nHost: a\r\n\r\n"
LONG = b"x" * 200_000
CLOSE = b"Connection: close\r\n"


@pytest.fixture(scope="module")
def port(service: Service) -> Iterator[int]:
    with serving(service.container) as port:
        yield port


def get(*lines: bytes, first: bytes = b"GET /x HTTP/1.1") -> bytes:
    return b"\r\n".join([first, *lines, b"", b""])


def post(*lines: bytes, body: bytes = b"a") -> bytes:
    return get(b"Host: a", *lines, first=b"POST /x HTTP/1.1") + body


CODED = b"Transfer-Encoding: chunked"


def chunks(body: bytes) -> bytes:
    return post(CODED, body=body)


# What a client could send so that a proxy and we would end its request at different places, and
# what else is no request: the status, and how the reason begins.
NO_LINE = {
    "a word too many": b"GET / HTTP/1.1 more\r\n\r\n",
    "two spaces before the target": get(b"Host: a", first=b"GET  /livez HTTP/1.1"),
    "two spaces behind the target": get(b"Host: a", first=b"GET /livez  HTTP/1.1"),
    "another protocol": get(b"Host: a", first=b"GET /livez RTSP/1.0"),
    "HTTP/1.2": get(b"Host: a", first=b"GET / HTTP/1.2"),
    "HTTP/0.9": b"GET /\r\n\r\n",
    "TLS": b"\x16\x03\x01\x02\r\n\r\n",
    "a target without a slash": get(b"Host: a", first=b"GET livez HTTP/1.1"),
    "a target beyond ASCII": get(b"Host: a", first=b"GET /\xff HTTP/1.1"),
    "no colon": get(b"Host: a", b"bad header"),
    "NUL in the target": get(b"Host: a", first=b"GET /\0 HTTP/1.1"),
    "NUL in a value": get(b"Host: a", b"X: a\0b"),
    "NUL in a name": get(b"Host: a", b"X\0: a"),
    "a space in a name": get(b"Host: a", b"X y: a"),
    "no name": get(b"Host: a", b": a"),
    "a folded header": get(b"Host: a", b"X: a", b" b: c"),
    "a folded first header": get(b" Host: a"),
    "a folded coding": post(b"Transfer-Encoding:", b" chunked", body=b"0\r\n\r\n"),
    "bare line feeds": b"GET /x HTTP/1.1\nHost: a\n\n",
    "a bare line feed": b"GET /x HTTP/1.1\r\nHost: a\nX: y\r\n\r\n",
    "a bare line feed at the end": b"GET /x HTTP/1.1\r\nHost: a\r\n\n",
    "a bare carriage return": b"GET /x HTTP/1.1\r\nHost: a\rX: y\r\n\r\n",
    "a length, then chunks": post(b"Content-Length: 5", CODED, body=b"0\r\n\r\n"),
    "chunks, then a length": post(CODED, b"Content-Length: 5", body=b"0\r\n\r\n"),
    "two lengths": post(b"Content-Length: 1", b"Content-Length: 2"),
    "a length twice": post(b"Content-Length: 1", b"Content-Length: 1"),
    "a list of lengths": post(b"Content-Length: 1, 1"),
    "a length with a sign": post(b"Content-Length: +1"),
    "a negative length": post(b"Content-Length: -1"),
    "an empty length": post(b"Content-Length:"),
    "a letter as a length": post(b"Content-Length: x"),
    "a length over 64 bits": post(b"Content-Length: 18446744073709551617"),
    "a space before the colon": post(b"Content-Length : 1"),
    "chunked twice": post(b"Transfer-Encoding: chunked, chunked", body=b"0\r\n\r\n"),
    "a control before the coding": post(b"Transfer-Encoding: \x0bchunked"),
    "chunks in HTTP/1.0": get(CODED, first=b"POST / HTTP/1.0"),
}
NO_CHUNKS = {
    "a chunk of no length": b"zz\r\n",
    "a negative chunk": b"-1\r\na\r\n0\r\n\r\n",
    "a chunk over 64 bits": b"fffffffffffffffff\r\na\r\n0\r\n\r\n",
    "a chunk that is longer": b"1\r\nab\r\n0\r\n\r\n",
    "a line feed after a length": b"1\na\r\n0\r\n\r\n",
    "a line feed after a chunk": b"1\r\na\n0\r\n\r\n",
    "a line feed after the chunks": b"1\r\na\r\n0\r\n\n",
    "a line feed in an extension": b"1;a\nb\r\na\r\n0\r\n\r\n",
    "a length as a trailer": b"1\r\na\r\n0\r\nContent-Length: 5\r\n\r\n",
}
HOSTS = {
    "two hosts": get(b"Host: a", b"Host: a"),
    "two hosts in HTTP/1.0": get(b"Host: a", b"Host: a", first=b"GET / HTTP/1.0"),
}
REFUSED = {
    **{title: (sent, 400, "The first line or a header") for title, sent in NO_LINE.items()},
    **{title: (chunks(sent), 400, "The chunks") for title, sent in NO_CHUNKS.items()},
    **{title: (sent, 400, "There is more than one") for title, sent in HOSTS.items()},
    **{
        f"host {odd.decode()}": (get(b"Host: " + odd), 400, "The header Host is no name")
        for odd in (b"", b"a b", b"a/b", b"u@a", b"a, b", b"a:b", b"[::1", b"a%zz", b'"a"')
    },
    **{
        f"target {odd.decode()}": (
            get(b"Host: a", first=b"GET %s HTTP/1.1" % odd),
            400,
            "The target",
        )
        for odd in (b"*://x/livez", b"*", b"ftp://a/", b"http:///x", b"http://u@a/", b"/livez#a")
    },
    **{
        f"coding {odd}": (post(b"Transfer-Encoding: " + odd.encode()), 501, "This method")
        for odd in ("gzip", "gzip, chunked", "identity", "xchunked", '"chunked"')
    },
    "a tunnel": (get(b"Host: a", first=b"CONNECT a:443 HTTP/1.1"), 501, "This method"),
    "large chunks": (chunks((b"10000\r\n" + b" " * 0x10000 + b"\r\n") * 17), 413, "The body"),
    "101 headers": (get(b"Host: a", *[b"X: a"] * 100), 431, "There are over"),
    "a long extension of a chunk": (chunks(b"1;" + LONG), 431, "There are over"),
}


@pytest.mark.parametrize("title", REFUSED)
def test_what_is_no_request_is_refused_and_nothing_behind_it_is_one(port: int, title: str) -> None:
    sent, status, reason = REFUSED[title]
    found = received(port, sent, ALIVE)
    assert found.count(b"HTTP/1.1 ") == 1, "something was smuggled"
    answer = Answer(found)
    assert (answer.status, answer.headers["connection"]) == (status, "close")
    assert answer.json()["error"]["message"].startswith(reason)
    meta = answer.json()["meta"]
    assert meta.keys() == {"timestamp", "response_time_ms", "request_id"}
    assert answer.headers["x-request-id"] == meta["request_id"]
    assert answer.headers["cache-control"] == "no-store"


@pytest.mark.parametrize("first", [b"GET  /livez HTTP/1.1", b"GET /livez RTSP/1.0"])
def test_the_line_of_a_later_request_is_read_as_strictly(port: int, first: bytes) -> None:
    head = b"POST /livez HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nab"
    found = received(port, ALIVE + head + get(b"Host: a", first=first) + ALIVE)
    statuses = [b"HTTP/1.1 200 ", b"HTTP/1.1 405 ", b"HTTP/1.1 400 "]
    assert re.findall(rb"HTTP/1\.1 [0-9]+ ", found) == statuses


TAKEN = {
    "capitals": get(b"Host: A", first=b"GET HTTPS://API.example:443/livez?a=b HTTP/1.1"),
    "an IPv6 address": get(b"Host: [::1]:8080", first=b"GET /livez HTTP/1.1"),
    "an empty port": get(b"Host: a_b.example:", first=b"GET /livez HTTP/1.1"),
    "empty lines before it": b"\r\n\r\n" + ALIVE,
    "a body that nobody reads": get(b"Host: a", b"Content-Length: 2", first=b"GET /livez HTTP/1.1")
    + b"ab",
    "another expectation": get(b"Host: a", b"Expect: magic", first=b"GET /livez HTTP/1.1"),
}


@pytest.mark.parametrize("title", TAKEN)
def test_what_is_odd_but_right_is_answered(port: int, title: str) -> None:
    found = received(port, TAKEN[title], request(LAST))
    assert found.startswith(b"HTTP/1.1 200 OK\r\n")
    assert found.endswith(b'{"ok":true}')
    assert b"\r\nserver:" not in found


LAST = "GET /livez HTTP/1.1"
BROKEN = {  # By status: what follows method and path so that the server itself replies.
    400: b" HTTP/1.1\r\nbad header\r\n\r\n",
    408: b" HTTP/1.1\r\n",
    413: b" HTTP/1.1\r\nContent-Length: %d\r\n\r\n" % (BODY_BYTES_MAX + 1),
    414: b"?" + LONG,
    431: b" HTTP/1.1\r\nX: " + LONG,
    501: b" HTTP/1.1\r\nTransfer-Encoding: gzip\r\n\r\n",
    503: b" HTTP/1.1\r\n",
}


@pytest.fixture(scope="module")
def hasty(share_service: MakeService) -> Iterator[int]:
    """Serve an installation that gives requests a second."""
    with serving(share_service(REQUEST_READ_S="1").container) as port:
        yield port


@pytest.mark.parametrize("status", BROKEN)
def test_the_document_tells_what_the_server_replies_at_each_operation(
    service: Service, hasty: int, status: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    if status == 503:  # Every byte is one too many.
        monkeypatch.setattr(server, "BUFFERED_BYTES_MAX", 0)
        monkeypatch.setattr(server, "RECOUNT_BYTES", 0)
    document = described(service.app.extensions[DOCUMENT][""])
    operations = {
        (path, method): operation
        for path, operations in document["paths"].items()
        for method, operation in operations.items()
        if method in {"get", "post", "put", "patch", "delete"}
    }
    with ThreadPoolExecutor(len(operations)) as pool:
        sent = [f"{method.upper()} {path}".encode() + BROKEN[status] for path, method in operations]
        answers = [*pool.map(partial(send, hasty), sent)]
    for (place, operation), answer in zip(operations.items(), answers, strict=True):
        assert answer.status == status, place
        found = differences(document, operation, status, answer.headers.items(), answer.body)
        assert not found, place


def test_the_document_tells_of_its_life_and_the_token_operation_has_its_own_shape(
    service: Service, port: int
) -> None:
    document = described(service.app.extensions[DOCUMENT][""])
    answer, operation = send(port, request(LAST)), document["paths"]["/livez"]["get"]
    assert not differences(document, operation, 200, answer.headers.items(), answer.body)
    head = request("POST /auth/token HTTP/1.1", Content_Length=str(2 * 1024 * 1024))
    assert send(port, head).json()["error"] == "invalid_request"
    answer = send(port, request("HEAD /livez HTTP/1.1"))
    assert (answer.status, answer.body, answer.headers["content-length"]) == (200, b"", "11")


@pytest.mark.parametrize("space", [" ", "\t", " \t "])
def test_white_space_around_a_value_is_none_of_it(port: int, acme: Tenant, space: str) -> None:
    headers = {"X-Request-Id": f"{space}r-1{space}"}
    headers["Authorization"] = f"{space}{acme.headers['Authorization']}{space}"
    answer = send(port, request("GET /v1/wallet HTTP/1.1", acme, **headers))
    assert (answer.status, answer.headers["x-request-id"]) == (200, "r-1")


def test_headers_that_come_twice_are_no_organization(
    port: int, acme: Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    service = acme.service
    token = service.token(service.register_client(None))
    head = request("GET /v1/wallet HTTP/1.1", Authorization=f"Bearer {token}")
    twice = f"X-Organization-Id: {acme.id}\r\n".encode() * 2
    answer = send(port, head[:-2] + twice + b"\r\n")
    assert (answer.status, answer.code()) == (403, "ORGANIZATION_NOT_FOUND")
    assert answer.json()["error"]["message"] == HEADER_TWICE
    # One with underscores is not taken for one with hyphens.
    sent = request("GET /readyz HTTP/1.1")[:-2] + b"X_Request_Id: chosen\r\n\r\n"
    assert send(port, sent).headers["x-request-id"] != "chosen"
    remembered, key = list[bytes](), server._key  # noqa: SLF001  # The test stands between.
    monkeypatch.setattr(server, "_key", lambda name: remembered.append(name) or key(name))
    assert send(port, sent.replace(b"X_Request_Id", b"x" * 60_000)).status in {200, 503}
    assert 0 < max(map(len, remembered)) < 200


def test_a_304_keeps_the_connection_that_a_poller_uses(port: int, acme: Tenant) -> None:
    reply = acme.post("/number-lookup/bulk", json={"phone_numbers": ["+447400123456"]})
    path = f"/number-lookup/bulk/{reply.json['data']['job_id']}"
    acme.service.until(lambda: acme.get(path).json["data"]["finished_at"] is not None)
    acme.service.until_projected("jobs")  # Until then its table may show it as it was before.
    connection = HTTPConnection(HOST, port, timeout=10)
    connection.request("GET", path, headers=acme.headers)
    first = connection.getresponse()
    first.read()
    used = connection.sock
    for _ in range(2):
        tag = str(first.headers["ETag"])
        connection.request("GET", path, headers={**acme.headers, "If-None-Match": tag})
        unchanged = connection.getresponse()
        assert (unchanged.status, unchanged.read()) == (304, b"")
        assert connection.sock is used
    connection.close()


def test_requests_that_come_at_once_are_answered_in_order(port: int, acme: Tenant) -> None:
    """Also a broken one among them, once those before it are answered."""
    wallet = request("GET /v1/wallet HTTP/1.1", acme).replace(CLOSE, b"")
    found = received(port, ALIVE + wallet + ALIVE * 1_000 + wallet + b"nonsense\r\n\r\n" + ALIVE)
    assert found.count(b"HTTP/1.1 200 OK") == 1_003
    assert found.count(b'"balance"') == 2
    assert found.count(b"HTTP/1.1 ") == 1_004
    assert b"BAD_REQUEST" in found[found.rindex(b"HTTP/1.1 ") :]


def test_a_request_in_chunks_or_many_pieces_is_one(port: int, acme: Tenant) -> None:
    body = b"%x\r\n%s\r\n0\r\n\r\n" % (len(NUMBERS), NUMBERS)
    assert send(port, request(BULK, acme, **CHUNKED), body).status == 202
    sent = request(BULK, acme, Content_Length=str(len(NUMBERS)), **JSON) + NUMBERS
    with socket.create_connection((HOST, port), timeout=10) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for byte in sent:
            connection.sendall(bytes([byte]))
        assert connection.recv(65_536).startswith(b"HTTP/1.1 202 ")


def test_who_asks_first_whether_to_go_on_is_told(port: int, acme: Tenant) -> None:
    head = request(BULK, acme, Content_Length=str(len(NUMBERS)), Expect="100-continue", **JSON)
    with socket.create_connection((HOST, port), timeout=10) as connection:
        connection.sendall(head)
        assert connection.recv(65_536) == b"HTTP/1.1 100 Continue\r\n\r\n"
        connection.sendall(NUMBERS)
        assert connection.recv(65_536).startswith(b"HTTP/1.1 202 ")


def test_who_only_ends_its_own_side_is_answered(port: int, acme: Tenant) -> None:
    head = request("GET /v1/wallet HTTP/1.1", acme).replace(CLOSE, b"")
    with socket.create_connection((HOST, port), timeout=10) as connection:
        connection.sendall(head * 2)
        connection.shutdown(socket.SHUT_WR)
        assert read_all(connection).count(b"HTTP/1.1 200 ") == 2


def test_a_client_that_offers_http_2_is_answered_with_its_body(port: int, acme: Tenant) -> None:
    length = str(len(NUMBERS))
    head = request(BULK, acme, Content_Length=length, Upgrade="h2c", **JSON)
    head = head.replace(b"Connection: close", b"Connection: Upgrade, HTTP2-Settings")
    found = received(port, head + NUMBERS + request(LAST))
    assert re.findall(rb"HTTP/1.1 (\d+)", found) == [b"202", b"200"]


@pytest.mark.parametrize("version", ["1.0", "1.1"])
def test_a_download_has_no_chunks_in_http_1_0(port: int, acme: Tenant, version: str) -> None:
    head = request(f"GET /v1/transactions HTTP/{version}", acme, Accept="text/csv")
    answer = send(port, head)
    assert ("transfer-encoding" in answer.headers) == (version == "1.1")
    if version == "1.0":
        assert answer.body.startswith(b"sequence,")
    assert b"deposit" in answer.body
