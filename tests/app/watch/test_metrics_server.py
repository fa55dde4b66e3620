"""The port of a process: probes and metrics, and nothing secret in what they say."""

import json
import socket
import struct
import threading
from collections.abc import Callable, Iterator
from http.client import HTTPConnection
from threading import Event

import pytest
from prometheus_client import CollectorRegistry
from prometheus_client.core import Metric

from app.watch.metrics_server import MetricsReply, MetricsServer, Need, pages
from tests.installation import wait_until
from tests.log_lines import said_by

Get = Callable[..., tuple[int, str]]


@pytest.fixture
def open_endpoint() -> Iterator[Callable[..., Get]]:
    opened: list[MetricsServer] = []

    def make(*needs: Need) -> Get:
        by_name = {f"need {place}": need for place, need in enumerate(needs)}
        endpoint = MetricsServer("127.0.0.1", 0, pages(CollectorRegistry(), by_name))
        opened.append(endpoint)

        def get(path: str, method: str = "GET") -> tuple[int, str]:
            connection = HTTPConnection("127.0.0.1", endpoint.port, timeout=20)
            connection.request(method, path)
            reply = connection.getresponse()
            body = reply.read().decode()
            connection.close()
            return reply.status, body

        return get

    yield make
    for endpoint in opened:
        endpoint.close()


def test_a_process_that_needs_nothing_more_is_ready(open_endpoint: Callable[..., Get]) -> None:
    get = open_endpoint(lambda: None)
    assert get("/livez") == (200, '{"ok": true}')
    assert get("/readyz") == (200, '{"ok": true, "missing": []}')
    assert get("/metrics")[0] == 200
    assert get("/metrics?name[]=up")[0] == 200
    assert get("/readyz", "HEAD") == (200, "")
    assert get("/admin")[0] == 404


def test_what_is_missing_is_said_while_the_process_lives(open_endpoint: Callable[..., Get]) -> None:
    get = open_endpoint(lambda: "the tables are not up to date", lambda: None)
    status, body = get("/readyz")
    assert (status, json.loads(body)["missing"]) == (503, ["the tables are not up to date"])
    assert get("/livez")[0] == 200


def test_an_error_is_named_but_not_quoted(open_endpoint: Callable[..., Get]) -> None:
    def fail() -> str | None:
        message = "postgresql://user:canary@host refused"
        raise ConnectionError(message)

    status, body = open_endpoint(fail)("/readyz")
    assert status == 503
    assert "ConnectionError" in body
    assert "canary" not in body


def test_a_need_that_does_not_answer_is_missing(open_endpoint: Callable[..., Get]) -> None:
    never = Event()

    def hang() -> str | None:
        never.wait()
        return None

    get = open_endpoint(hang)
    status, body = get("/readyz")
    assert (status, "need 0: no answer" in body) == (503, True)
    assert get("/livez")[0] == 200
    never.set()


def test_a_page_that_fails_is_a_500_and_a_line_of_the_log(
    caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    class Broken(CollectorRegistry):
        def collect(self) -> Iterator[Metric]:
            message = "broken"
            raise ValueError(message)

    endpoint = MetricsServer("127.0.0.1", 0, pages(Broken(), {}))
    connection = HTTPConnection("127.0.0.1", endpoint.port, timeout=20)
    connection.request("GET", "/metrics")
    assert connection.getresponse().status == 500
    connection.close()
    endpoint.close()
    assert "a page of probes and metrics failed" in caplog.text
    assert capfd.readouterr() == ("", "")


def test_who_leaves_before_the_answer_is_no_event(
    caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    begun, left = Event(), Event()

    def page() -> MetricsReply:
        begun.set()
        assert left.wait(20)
        return MetricsReply(
            200, "text/plain", bytes(10_000_000)
        )  # More than a socket takes at once.

    endpoint = MetricsServer("127.0.0.1", 0, {"/page": page})
    with socket.create_connection(("127.0.0.1", endpoint.port)) as client:
        client.sendall(b"GET /page HTTP/1.0\r\n\r\n")
        assert begun.wait(20)
        # Closed with a reset, so that the answer meets an error for certain.
        client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    left.set()
    wait_until(lambda: not any("process_request" in each.name for each in threading.enumerate()))
    endpoint.close()
    assert not said_by(caplog, "app.watch.metrics_server")
    assert capfd.readouterr() == ("", "")


def test_a_port_that_is_taken_is_an_error() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        with pytest.raises(OSError, match="in use"):
            MetricsServer("127.0.0.1", taken.getsockname()[1], {})
