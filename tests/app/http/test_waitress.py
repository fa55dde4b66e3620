"""Over a real socket: what a server decodes, buffers or refuses before the app is asked."""

import json
import socket
from collections.abc import Iterator
from http.client import HTTPConnection
from threading import Thread
from typing import Any

import pytest
from waitress import create_server

from app.http.waitress_errors import answer_in_json
from tests.app.http.service import Service, Tenant

LIMIT_BYTES = 2 * 1024 * 1024
HEADER_BYTES_MAX = 256 * 1024  # What waitress reads before it gives up.
CHUNK = b"10000\r\n" + b" " * 0x10000 + b"\r\n"


@pytest.fixture(scope="module")
def port(service: Service) -> Iterator[int]:
    """The port of a server with JSON errors."""
    server = create_server(
        service.app, host="127.0.0.1", port=0, max_request_body_size=LIMIT_BYTES, ident=None
    )
    answer_in_json(server, service.container.clock)
    thread = Thread(target=server.run, daemon=True)
    thread.start()
    yield server.effective_port
    server.task_dispatcher.shutdown()
    server.close()
    # The loop of waitress ends when its map is empty; its trigger is all that is left in it.
    server.trigger.close()
    thread.join(10)


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


def test_the_token_comes_before_a_chunked_body(port: int) -> None:
    head = request("POST /number-lookup/bulk HTTP/1.1", Transfer_Encoding="chunked")
    assert send(port, head, CHUNK * 17, b"0\r\n\r\n").code() == "UNAUTHORIZED"


@pytest.mark.parametrize(
    ("sent", "status", "code"),
    [
        (b"nonsense\r\n\r\n", 400, "BAD_REQUEST"),
        (b"GET / HTTP/1.1 more\r\n\r\n", 400, "BAD_REQUEST"),
        (b"\x16\x03\x01\x02\r\n\r\n", 400, "BAD_REQUEST"),
        (request("GET /livez HTTP/1.1", Content_Length="x"), 400, "BAD_REQUEST"),
        (request("GET /livez HTTP/1.1", Content_Length="1, 1"), 400, "BAD_REQUEST"),
        (b"GET /livez HTTP/1.1\r\nbad header\r\n\r\n", 400, "BAD_REQUEST"),
        (request("GET /livez HTTP/1.1", Transfer_Encoding="gzip"), 501, "NOT_IMPLEMENTED"),
        (
            request("POST /number-lookup HTTP/1.1", Transfer_Encoding="chunked") + b"zz\r\n",
            400,
            "BAD_REQUEST",
        ),
        (
            request("POST /number-lookup HTTP/1.1", Content_Length=str(LIMIT_BYTES + 1)),
            413,
            "PAYLOAD_TOO_LARGE",
        ),
        (
            b"GET /livez HTTP/1.1\r\nX-Long: ".ljust(HEADER_BYTES_MAX, b"x"),
            431,
            "REQUEST_HEADER_FIELDS_TOO_LARGE",
        ),
    ],
)
def test_what_waitress_refuses_is_json_too(port: int, sent: bytes, status: int, code: str) -> None:
    answer = send(port, sent)
    assert (answer.status, answer.code()) == (status, code)
    meta = answer.json()["meta"]
    assert meta.keys() == {"timestamp", "response_time_ms", "request_id"}
    assert answer.headers["X-Request-Id"] == meta["request_id"]
    assert answer.headers["Cache-Control"] == "no-store"


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
