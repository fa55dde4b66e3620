"""What a partner sees of `web`: its own server, granian, over a real socket.

Granian answers by itself, with an empty body, only what is no HTTP that it could hand on.
"""

import json
import signal
import socket
from collections.abc import Iterator
from contextlib import ExitStack
from http.client import HTTPConnection
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from app.container import Container
from app.demo import prepare_demo
from tests.app.cli.serving import free_port
from tests.app.cli.shell import Shell
from tests.installation import wait_until
from tests.scenarios.partner import Partner

COMES_UP_S = 40.0
END_S = 30.0
MEBIBYTE = 1024 * 1024
HEADER_BYTES_MAX = 8192 + 4096 * 100  # Of granian, for all headers together.
PROXY = "203.0.113.7"


class Answer:
    """A parsed reply; its header names are in lower case, as granian writes them."""

    def __init__(self, received: bytes) -> None:
        head, _, self.body = received.partition(b"\r\n\r\n")
        status, *lines = head.decode("latin-1").split("\r\n")
        self.status = int(status.split()[1])
        self.headers = dict(line.split(": ", 1) for line in lines)

    def json(self) -> dict[str, Any]:
        assert self.headers["content-type"] == "application/json"
        found: dict[str, Any] = json.loads(self.body)
        return found

    def code(self) -> str:
        return str(self.json()["error"]["code"])


class Web:
    """A `web` process on SQLite behind one trusted proxy; no broker is there."""

    def __init__(self, home: Path) -> None:
        self.port = free_port()
        self.shell = Shell(home).having(
            PORT=str(self.port),
            BROKER_URL=f"amqp://127.0.0.1:{free_port()}",
            TRUSTED_PROXIES="1",
            WEB_WORKERS="1",
            PRICE_PER_LOOKUP="0.005",
        )
        self.shell.run("migrate")
        self._log = (home / "web.log").open("wb")
        self.process = self.shell.start("web", stdout=self._log, stderr=self._log)
        self.partner = Partner(f"http://127.0.0.1:{self.port}", *demo(self.shell.container()))
        wait_until(lambda: self.partner.authorize().status == 200, COMES_UP_S)

    def stop(self) -> int:
        self.process.send_signal(signal.SIGTERM)
        status = self.process.wait(END_S)
        self._log.close()
        return status

    def send(self, *parts: bytes) -> Answer:
        """Send bytes and read until the server closes."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=20) as connection:
            try:
                for part in parts:
                    connection.sendall(part)
            except (BrokenPipeError, ConnectionResetError):
                pass  # The server has answered and closed before all was sent.
            received = b""
            while block := connection.recv(65_536):
                received += block
        return Answer(received)

    def request(self, line: str, *body: bytes, **headers: str) -> Answer:
        """Send a request with the token of the partner."""
        own = {"Host": "api.example", "Connection": "close"} | self.partner.headers()
        fields = own | {name.replace("_", "-"): value for name, value in headers.items()}
        lines = [f"{line} HTTP/1.1", *(f"{name}: {value}" for name, value in fields.items())]
        return self.send("\r\n".join([*lines, "", ""]).encode(), *body)


def demo(container: Container) -> tuple[str, str]:
    """Make an organization with money and plans; return its credentials."""
    made = prepare_demo(container)
    container.projector.catch_up()
    container.close()
    return made.client_id, made.client_secret


@pytest.fixture(scope="module")
def web(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Web]:
    started = Web(tmp_path_factory.mktemp("web"))
    yield started
    assert started.stop() == 0


def chunked(*chunks: bytes) -> bytes:
    return b"".join(b"%x\r\n%s\r\n" % (len(each), each) for each in (*chunks, b""))


def test_a_plain_request_is_answered(web: Web) -> None:
    answer = web.request("GET /v1/wallet")
    assert (answer.status, answer.json()["data"]["currency"]) == (200, "USD")


def test_a_head_request_has_no_body(web: Web) -> None:
    answer = web.request("HEAD /livez")
    assert (answer.status, answer.body) == (200, b"")


@pytest.mark.parametrize(
    ("line", "status", "code"),
    [
        ("GET /nowhere", 404, "NOT_FOUND"),
        ("GET /%ff", 404, "NOT_FOUND"),
        ("GET /%00", 404, "NOT_FOUND"),
        ("OPTIONS *", 404, "NOT_FOUND"),
        ("DELETE /livez", 405, "METHOD_NOT_ALLOWED"),
        ("BREW /livez", 405, "METHOD_NOT_ALLOWED"),
    ],
)
def test_what_no_route_takes_is_json(web: Web, line: str, status: int, code: str) -> None:
    answer = web.request(line)
    assert (answer.status, answer.code()) == (status, code)
    assert ("allow" in answer.headers) == (status == 405)


def test_a_chunked_body_is_read(web: Web) -> None:
    body = chunked(b'{"phone_numbers": ', b'["+14155552671"]}')
    answer = web.request(
        "POST /number-lookup/bulk",
        body,
        Transfer_Encoding="chunked",
        Content_Type="application/json",
    )
    assert answer.status == 202


def test_a_body_of_two_mebibytes_is_a_413_and_the_server_lives(web: Web) -> None:
    body = b" " * (2 * MEBIBYTE)
    headers = {"Content_Type": "application/json", "Content_Length": str(len(body))}
    answer = web.request("POST /number-lookup/bulk", body, **headers)
    assert (answer.status, answer.code()) == (413, "PAYLOAD_TOO_LARGE")
    assert web.request("GET /livez").status == 200


def test_two_mebibytes_in_chunks_are_refused_too(web: Web) -> None:
    sent = chunked(*[b" " * 65_536] * 32)
    headers = {"Content_Type": "application/json", "Transfer_Encoding": "chunked"}
    answer = web.request("POST /number-lookup/bulk", sent, **headers)
    assert (answer.status, answer.code()) in {(400, "BAD_REQUEST"), (413, "PAYLOAD_TOO_LARGE")}
    assert web.request("GET /livez").status == 200


def test_a_body_that_breaks_off_is_no_body_and_costs_nothing(web: Web) -> None:
    head = "POST /number-lookup/bulk"
    answer = web.request(
        head, b"zz\r\n", Transfer_Encoding="chunked", Content_Type="application/json"
    )
    assert (answer.status, answer.code()) == (422, "VALIDATION_ERROR")


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        (b"nonsense\r\n\r\n", 400),
        (b"GET / HTTP/1.1 more\r\n\r\n", 400),
        (b"\x16\x03\x01\x02\r\n\r\n", 400),
        (b"GET /\xff HTTP/1.1\r\n\r\n", 400),
        (b"GET /livez HTTP/1.1\r\nbad header\r\n\r\n", 400),
        (b"GET /livez HTTP/1.1\r\nContent-Length: x\r\n\r\n", 400),
        (b"GET /livez HTTP/1.1\r\nContent-Length: -1\r\n\r\n", 400),
        (b"GET /livez HTTP/1.1\r\nTransfer-Encoding: gzip\r\n\r\n", 400),
        (b"POST / HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab", 400),
        (b"GET /?".ljust(100_000, b"x") + b" HTTP/1.1\r\n\r\n", 414),
        (b"GET / HTTP/1.1\r\nX: ".ljust(2 * HEADER_BYTES_MAX, b"x"), 431),
    ],
)
def test_what_is_no_http_is_refused_by_granian_with_an_empty_body(
    web: Web, sent: bytes, status: int
) -> None:
    answer = web.send(sent)
    assert (answer.status, answer.body) == (status, b"")
    assert answer.headers["connection"] == "close"


def test_of_a_length_and_chunks_the_chunks_count_so_that_nothing_is_smuggled(web: Web) -> None:
    smuggled = b"GET /livez HTTP/1.1\r\nHost: api.example\r\n\r\n"
    answer = web.request(
        "POST /number-lookup/bulk",
        chunked() + smuggled,
        Transfer_Encoding="chunked",
        Content_Length=str(len(smuggled)),
        Content_Type="application/json",
    )
    assert (answer.status, answer.code()) == (422, "VALIDATION_ERROR")
    assert b"HTTP/1.1" not in answer.body


def test_requests_that_come_at_once_are_answered_in_order(web: Web) -> None:
    first = b"GET /livez HTTP/1.1\r\nHost: a\r\n\r\n"
    last = b"GET /nowhere HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"
    received = web.send(first * 3 + last).body
    assert received.count(b"HTTP/1.1 200 OK") == 2  # The head of the first one is parsed.
    assert received.rindex(b"200 OK") < received.index(b"404 Not Found")


def test_clients_that_never_end_their_headers_hold_up_nobody(web: Web) -> None:
    with ExitStack() as open_ones:
        for _ in range(200):
            slow = socket.create_connection(("127.0.0.1", web.port))
            open_ones.enter_context(slow)
            slow.sendall(b"GET /livez HTTP/1.1\r\nHost:")
        assert web.request("GET /livez").status == 200


def test_headers_that_come_twice_are_one_value_that_is_none(web: Web) -> None:
    request_id = f"X-Request-Id: {uuid4()}\r\n".encode()
    answer = web.send(b"GET /livez HTTP/1.1\r\nConnection: close\r\n" + 2 * request_id + b"\r\n")
    assert answer.status == 200
    assert answer.headers["x-request-id"] not in request_id.decode()


def test_a_304_keeps_the_connection_that_a_poller_uses(web: Web) -> None:
    connection = HTTPConnection("127.0.0.1", web.port, timeout=10)
    connection.request("GET", "/v1/plans/regions", headers=web.partner.headers())
    first = connection.getresponse()
    first.read()
    used = connection.sock
    tag = str(first.headers["ETag"])
    connection.request(
        "GET", "/v1/plans/regions", headers={**web.partner.headers(), "If-None-Match": tag}
    )
    unchanged = connection.getresponse()
    assert (unchanged.status, unchanged.read()) == (304, b"")
    assert connection.sock is used
    connection.close()


def test_the_address_behind_a_trusted_proxy_is_what_the_proxy_saw(web: Web) -> None:
    def code(seen: str) -> int:
        form = b"grant_type=client_credentials&client_id=cl_nobody&client_secret=wrong"
        answer = web.send(
            b"POST /auth/token HTTP/1.1\r\nHost: a\r\nConnection: close\r\n"
            b"Content-Type: application/x-www-form-urlencoded\r\n"
            b"X-Forwarded-For: 198.51.100.1, %s\r\nContent-Length: %d\r\n\r\n%s"
            % (seen.encode(), len(form), form)
        )
        assert json.loads(answer.body)["error"] in {"invalid_client", "slow_down"}
        return answer.status

    wait_until(lambda: code(PROXY) == 429)
    assert code("203.0.113.8") == 401


def test_signals_that_come_one_upon_the_other_end_it_once(tmp_path: Path) -> None:
    started = Web(tmp_path)
    for _ in range(500):
        started.process.send_signal(signal.SIGTERM)
    assert started.stop() == 0
