"""Over a real socket: what a server decodes, buffers or refuses before the app is asked."""

import json
import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from http.client import HTTPConnection
from threading import Thread
from typing import Any

import pytest

from app.http.application import Bridge, create_front
from app.http.docs import DOCUMENT
from app.http.edge import front as front_module
from app.http.edge.front import Front
from app.http.edge.input import BODY_BYTES_MAX
from app.http.edge.listening import bind, listen
from tests.app.http.described import described, differences
from tests.app.http.service import Service, Tenant

pytestmark = pytest.mark.any_database

CHUNK = b"10000\r\n" + b" " * 0x10000 + b"\r\n"


@pytest.fixture(scope="module")
def front(service: Service) -> Iterator[Front]:
    """The front of a service, in a thread."""
    listeners = bind("127.0.0.1", 0)
    listen(listeners, "127.0.0.1", 0)
    front = create_front(Bridge(service.container, many=False), listeners, many=False, finish_s=10)
    thread = Thread(target=front.run)
    thread.start()
    yield front
    front.stop()
    thread.join(10)
    assert not thread.is_alive()


@pytest.fixture(scope="module")
def port(front: Front) -> int:
    return int(front.addresses[0][1])


class Answer:
    """A parsed reply."""

    def __init__(self, received: bytes) -> None:
        head, _, self.body = received.partition(b"\r\n\r\n")
        status, *lines = head.decode("latin-1").split("\r\n")
        self.status = int(status.split()[1])
        self.headers = dict(line.split(": ", 1) for line in lines)

    def json(self) -> dict[str, Any]:
        assert self.headers["Content-Type"] == "application/json"
        found: dict[str, Any] = json.loads(self.body)
        return found

    def code(self) -> str:
        return str(self.json()["error"]["code"])


def send(port: int, *parts: bytes) -> Answer:
    with socket.create_connection(("127.0.0.1", port), timeout=10) as connection:
        try:
            for part in parts:
                connection.sendall(part)
        except (BrokenPipeError, ConnectionResetError):
            pass  # The server has answered and closed before all was sent.
        received = b""
        while block := connection.recv(65536):
            received += block
    return Answer(received)


def request(line: str, tenant: Tenant | None = None, **headers: str) -> bytes:
    own = {"Host": "api.example", "Connection": "close"}
    if tenant is not None:
        own |= tenant.headers
    fields = {**own, **{name.replace("_", "-"): value for name, value in headers.items()}}
    lines = [line, *(f"{name}: {value}" for name, value in fields.items()), "", ""]
    return "\r\n".join(lines).encode("latin-1")


def test_a_plain_request_is_answered(port: int, acme: Tenant) -> None:
    answer = send(port, request("GET /v1/wallet HTTP/1.1", acme))
    assert answer.status == 200
    assert answer.json()["success"] is True
    assert "Server" not in answer.headers


@pytest.mark.parametrize("space", [" ", "\t", " \t "])
def test_white_space_around_a_value_is_none_of_it(port: int, acme: Tenant, space: str) -> None:
    headers = {"X-Request-Id": f"{space}r-1{space}"}
    headers["Authorization"] = f"{space}{acme.headers['Authorization']}{space}"
    answer = send(port, request("GET /v1/wallet HTTP/1.1", acme, **headers))
    assert (answer.status, answer.headers["X-Request-Id"]) == (200, "r-1")


def test_a_chunked_body_is_read(port: int, acme: Tenant) -> None:
    body = b'{"phone_numbers": ["+14155552671"]}'
    head = request(
        "POST /number-lookup/bulk HTTP/1.1",
        acme,
        Transfer_Encoding="chunked",
        Content_Type="application/json",
    )
    answer = send(port, head, b"%x\r\n%s\r\n0\r\n\r\n" % (len(body), body))
    assert answer.status == 202


def test_a_chunked_body_over_one_mebibyte_is_a_413(port: int, acme: Tenant) -> None:
    head = request(
        "POST /number-lookup/bulk HTTP/1.1",
        acme,
        Transfer_Encoding="chunked",
        Content_Type="application/json",
    )
    answer = send(port, head, CHUNK * 17, b"0\r\n\r\n")
    assert (answer.status, answer.code()) == (413, "PAYLOAD_TOO_LARGE")


LONG = b"x" * 200_000


@pytest.mark.parametrize(
    ("sent", "status", "code"),
    [
        (b"nonsense\r\n\r\n", 400, "BAD_REQUEST"),
        (b"GET / HTTP/1.1 more\r\n\r\n", 400, "BAD_REQUEST"),
        (b"GET / HTTP/2.0\r\n\r\n", 400, "BAD_REQUEST"),
        (b"\x16\x03\x01\x02\r\n\r\n", 400, "BAD_REQUEST"),
        (b"GET /\xff HTTP/1.1\r\n\r\n", 400, "BAD_REQUEST"),
        (request("GET /livez HTTP/1.1", Content_Length="x"), 400, "BAD_REQUEST"),
        (request("GET /livez HTTP/1.1", Content_Length="-1"), 400, "BAD_REQUEST"),
        (request("GET /livez HTTP/1.1", Content_Length="1, 1"), 400, "BAD_REQUEST"),
        (b"GET /livez HTTP/1.1\r\nbad header\r\n\r\n", 400, "BAD_REQUEST"),
        (b"GET /livez HTTP/1.1\r\nX: a\r\n folded: b\r\n\r\n", 400, "BAD_REQUEST"),
        (request("BREW /livez HTTP/1.1"), 501, "NOT_IMPLEMENTED"),
        (request("CONNECT a.example:443 HTTP/1.1"), 501, "NOT_IMPLEMENTED"),
        (request("GET /livez HTTP/1.1", Transfer_Encoding="gzip"), 501, "NOT_IMPLEMENTED"),
        (request("GET /livez HTTP/1.1", Transfer_Encoding="gzip, chunked"), 501, "NOT_IMPLEMENTED"),
        (request("GET /livez HTTP/1.0", Transfer_Encoding="chunked"), 400, "BAD_REQUEST"),
        (
            request("POST /number-lookup HTTP/1.1", Transfer_Encoding="chunked") + b"zz\r\n",
            400,
            "BAD_REQUEST",
        ),
        (
            request("POST /number-lookup HTTP/1.1", Content_Length=str(1024 * 1024 + 1)),
            413,
            "PAYLOAD_TOO_LARGE",
        ),
        (b"GET /?" + LONG, 414, "REQUEST_URI_TOO_LONG"),
        (b"GET / HTTP/1.1\r\nX: " + LONG, 431, "REQUEST_HEADER_FIELDS_TOO_LARGE"),
        (b"GET / HTTP/1.1\r\n" + b"X: y\r\n" * 102, 431, "REQUEST_HEADER_FIELDS_TOO_LARGE"),
        (
            request("POST / HTTP/1.1", Transfer_Encoding="chunked") + b"1;" + LONG,
            431,
            "REQUEST_HEADER_FIELDS_TOO_LARGE",
        ),
    ],
)
def test_what_is_handed_to_nobody_is_json_too(
    port: int, sent: bytes, status: int, code: str
) -> None:
    answer = send(port, sent)
    assert (answer.status, answer.code()) == (status, code)
    meta = answer.json()["meta"]
    assert meta.keys() == {"timestamp", "response_time_ms", "request_id"}
    assert answer.headers["X-Request-Id"] == meta["request_id"]
    assert answer.headers["Cache-Control"] == "no-store"
    assert answer.headers["Connection"] == "close"
    words = answer.json()["error"]["message"]
    assert "JSON" not in words
    if status == 400:
        assert ("chunks" if sent.endswith(b"zz\r\n") else "header") in words


BROKEN = {  # By status: what follows method and path so that the front itself replies.
    400: b" HTTP/1.1\r\nbad header\r\n\r\n",
    408: b" HTTP/1.1\r\n",
    413: b" HTTP/1.1\r\nContent-Length: %d\r\n\r\n" % (BODY_BYTES_MAX + 1),
    414: b"?" + LONG,
    431: b" HTTP/1.1\r\nX: " + LONG,
    501: b" HTTP/1.1\r\nTransfer-Encoding: gzip\r\n\r\n",
    503: b" HTTP/1.1\r\n",
}


@pytest.mark.parametrize("status", BROKEN)
def test_the_document_tells_what_the_front_replies_at_each_operation(
    service: Service, front: Front, port: int, status: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    if status == 408:
        monkeypatch.setattr(front, "read_s", 0.5)
    if status == 503:  # Every byte is one too many.
        monkeypatch.setattr(front_module, "HELD_BYTES_MAX", 0)
        monkeypatch.setattr(front_module, "RECOUNT_BYTES", 0)
    document = described(service.app.extensions[DOCUMENT][""])
    operations = {
        (path, method): operation
        for path, operations in document["paths"].items()
        for method, operation in operations.items()
        if method in {"get", "post", "put", "patch", "delete"}
    }
    with ThreadPoolExecutor(len(operations)) as pool:
        sent = [f"{method.upper()} {path}".encode() + BROKEN[status] for path, method in operations]
        answers = [*pool.map(partial(send, port), sent)]
    for (place, operation), answer in zip(operations.items(), answers, strict=True):
        assert answer.status == status, place
        found = differences(document, operation, status, answer.headers.items(), answer.body)
        assert not found, place


def test_the_document_tells_what_the_front_says_of_its_life(service: Service, port: int) -> None:
    document = described(service.app.extensions[DOCUMENT][""])
    answer = send(port, request("GET /livez HTTP/1.1"))
    operation = document["paths"]["/livez"]["get"]
    assert not differences(document, operation, 200, answer.headers.items(), answer.body)


@pytest.mark.parametrize("first", ["Content-Length: 44", "Transfer-Encoding: chunked"])
def test_a_length_beside_chunks_is_refused_and_nothing_is_smuggled(port: int, first: str) -> None:
    both = {"Content-Length: 44", "Transfer-Encoding: chunked"}
    lines = ["POST / HTTP/1.1", "Host: a", first, *(both - {first}), "", ""]
    smuggled = b"GET /livez HTTP/1.1\r\nHost: api.example\r\n\r\n"
    answer = send(port, "\r\n".join(lines).encode(), b"0\r\n\r\n", smuggled)
    assert (answer.status, answer.code()) == (400, "BAD_REQUEST")
    assert b"HTTP/1.1" not in answer.body


@pytest.mark.parametrize("second", ["2", "1"])
def test_a_length_that_is_given_twice_is_refused(port: int, second: str) -> None:
    lines = ["POST / HTTP/1.1", "Content-Length: 1", f"Content-Length: {second}", "", "a"]
    answer = send(port, "\r\n".join(lines).encode())
    assert (answer.status, answer.code()) == (400, "BAD_REQUEST")


def test_what_the_token_operation_is_told_has_its_own_shape(port: int) -> None:
    head = request("POST /auth/token HTTP/1.1", Content_Length=str(2 * 1024 * 1024))
    assert send(port, head).json()["error"] == "invalid_request"


def test_a_head_request_has_no_body(port: int) -> None:
    answer = send(port, request("HEAD /livez HTTP/1.1"))
    assert (answer.status, answer.body) == (200, b"")


def test_headers_that_come_twice_are_no_organization(port: int, acme: Tenant) -> None:
    service = acme.service
    token = service.token(service.register_client(None))
    head = request("GET /v1/wallet HTTP/1.1", Authorization=f"Bearer {token}")
    twice = f"X-Organization-Id: {acme.id}\r\n".encode() * 2
    answer = send(port, head[:-2] + twice + b"\r\n")
    assert (answer.status, answer.code()) == (403, "ORGANIZATION_NOT_FOUND")


def test_a_304_keeps_the_connection_that_a_poller_uses(port: int, acme: Tenant) -> None:
    reply = acme.post("/number-lookup/bulk", json={"phone_numbers": ["+447400123456"]})
    path = f"/number-lookup/bulk/{reply.json['data']['job_id']}"
    acme.service.until(lambda: acme.get(path).json["data"]["finished_at"] is not None)
    acme.service.until_projected("jobs")  # Until then its table may show it as it was before.
    connection = HTTPConnection("127.0.0.1", port, timeout=10)
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
    alive = b"GET /livez HTTP/1.1\r\nHost: a\r\n\r\n"
    wallet = request("GET /v1/wallet HTTP/1.1", acme).replace(b"Connection: close\r\n", b"")
    with socket.create_connection(("127.0.0.1", port), timeout=10) as connection:
        connection.sendall(alive + wallet + alive * 1_000 + wallet + b"nonsense\r\n\r\n" + alive)
        received = b""
        while block := connection.recv(65_536):
            received += block
    assert received.count(b"HTTP/1.1 200 OK") == 1_003
    assert received.count(b'"balance"') == 2
    assert received.count(b"HTTP/1.1 ") == 1_004
    assert b"BAD_REQUEST" in received[received.rindex(b"HTTP/1.1 ") :]


def test_a_request_in_many_pieces_is_one(port: int, acme: Tenant) -> None:
    body = b'{"phone_numbers": ["+14155552671"]}'
    sent = request(
        "POST /number-lookup/bulk HTTP/1.1",
        acme,
        Content_Length=str(len(body)),
        Content_Type="application/json",
    )
    with socket.create_connection(("127.0.0.1", port), timeout=10) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for byte in sent + body:
            connection.sendall(bytes([byte]))
        assert connection.recv(65_536).startswith(b"HTTP/1.1 202 ")


def test_who_asks_first_whether_to_go_on_is_told(port: int, acme: Tenant) -> None:
    body = b'{"phone_numbers": ["+14155552671"]}'
    head = request(
        "POST /number-lookup/bulk HTTP/1.1",
        acme,
        Content_Length=str(len(body)),
        Content_Type="application/json",
        Expect="100-continue",
    )
    with socket.create_connection(("127.0.0.1", port), timeout=10) as connection:
        connection.sendall(head)
        assert connection.recv(65_536) == b"HTTP/1.1 100 Continue\r\n\r\n"
        connection.sendall(body)
        assert connection.recv(65_536).startswith(b"HTTP/1.1 202 ")


def test_who_only_ends_its_own_side_is_answered(port: int, acme: Tenant) -> None:
    head = request("GET /v1/wallet HTTP/1.1", acme).replace(b"Connection: close\r\n", b"")
    with socket.create_connection(("127.0.0.1", port), timeout=10) as connection:
        connection.sendall(head)
        connection.shutdown(socket.SHUT_WR)
        assert connection.recv(65_536).startswith(b"HTTP/1.1 200 ")
        assert connection.recv(65_536) == b""


def test_a_client_that_offers_http_2_is_answered_with_its_body(port: int, acme: Tenant) -> None:
    body = b'{"phone_numbers": ["+14155552671"]}'
    head = request(
        "POST /number-lookup/bulk HTTP/1.1",
        acme,
        Content_Length=str(len(body)),
        Content_Type="application/json",
        Upgrade="h2c",
    ).replace(b"Connection: close", b"Connection: Upgrade, HTTP2-Settings")
    with socket.create_connection(("127.0.0.1", port), timeout=10) as connection:
        connection.sendall(head + body)
        assert connection.recv(65_536).startswith(b"HTTP/1.1 202 ")
        connection.sendall(b"GET /livez HTTP/1.1\r\n\r\n")
        assert connection.recv(65_536).startswith(b"HTTP/1.1 200 ")


def test_an_old_client_is_answered_and_left(port: int) -> None:
    answer = send(port, b"GET /livez HTTP/1.0\r\n\r\n")
    assert (answer.status, answer.headers["Connection"]) == (200, "close")


def test_a_target_that_names_the_server_is_its_path(port: int, acme: Tenant) -> None:
    answer = send(port, request("GET http://api.example/v1/wallet?a=b HTTP/1.1", acme))
    assert answer.status == 200


def test_a_header_with_underscores_is_not_taken_for_one_with_hyphens(port: int) -> None:
    sent = b"GET /readyz HTTP/1.1\r\nConnection: close\r\nX_Request_Id: chosen\r\n\r\n"
    assert send(port, sent).headers["X-Request-Id"] != "chosen"


def test_a_reply_that_the_client_takes_slowly_holds_no_thread(port: int, acme: Tenant) -> None:
    head = request("GET /openapi.json HTTP/1.1", acme).replace(b"Connection: close\r\n", b"")
    with socket.socket() as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65_536)
        connection.settimeout(10)
        connection.connect(("127.0.0.1", port))
        connection.sendall(head * 20)
        for _ in range(100):  # More than there are threads.
            assert send(port, request("GET /v1/wallet HTTP/1.1", acme)).status == 200
        connection.sendall(request("GET /livez HTTP/1.1"))
        received = 0
        tail = b""
        while block := connection.recv(65_536):
            received += len(block)
            tail = (tail + block)[-100:]
    assert received > 20 * len(send(port, request("GET /openapi.json HTTP/1.1")).body)
    assert tail.endswith(b'{"ok":true}')
