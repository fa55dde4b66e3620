"""Sinks: a checkpoint lies there whole under its name, or its sink says why not."""

import http.server
import ssl
import threading
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from app.adapters.sinks import sink_at
from tests.support.certificate import certificate
from workers.checkpoints import NotAccepted

DAY = timedelta(days=1)
NOTE = "text\n\n\u2014 name c2lnbmVk\n"


class Keeper(http.server.BaseHTTPRequestHandler):
    """Keeps what is PUT; answers 503 while it is `closed`."""

    kept: dict[str, str]
    closed: bool

    def do_PUT(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"])).decode()
        if not self.closed:
            self.kept[self.path] = body
        self.send_response(503 if self.closed else 201)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture(params=["http", "https"])
def keeper(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[tuple[str, type[Keeper]]]:
    handler = type("Own", (Keeper,), {"kept": {}, "closed": False})
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        if request.param == "https":
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(file := certificate(tmp_path))
            server.socket = context.wrap_socket(server.socket, server_side=True)
            monkeypatch.setenv("SSL_CERT_FILE", str(file))
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield f"{request.param}://127.0.0.1:{server.server_port}/checkpoints", handler
        server.shutdown()
        thread.join()


def test_a_directory_gets_a_file_and_may_get_it_twice(tmp_path: Path) -> None:
    sink = sink_at(str(tmp_path))
    assert sink is not None
    for _ in range(2):
        sink.put("one.txt", NOTE)
    assert [path.name for path in tmp_path.iterdir()] == ["one.txt"]
    assert (tmp_path / "one.txt").read_text("utf-8") == NOTE


def test_a_directory_that_is_not_mounted_is_not_made(tmp_path: Path) -> None:
    sink = sink_at(str(tmp_path / "mount"))
    assert sink is not None
    with pytest.raises(NotAccepted, match=r"CHECKPOINT_SINK: .*mount: No such"):
        sink.put("one.txt", NOTE)


def test_an_address_accepts_by_its_status(keeper: tuple[str, type[Keeper]]) -> None:
    url, handler = keeper
    sink = sink_at(url)
    assert sink is not None
    handler.closed = True
    with pytest.raises(NotAccepted, match="answers 503"):
        sink.put("one.txt", NOTE)
    handler.closed = False
    sink.put("one.txt", NOTE)
    assert handler.kept == {"/checkpoints/one.txt": NOTE}


def test_an_address_whose_certificate_nobody_trusts_gets_nothing(
    keeper: tuple[str, type[Keeper]], monkeypatch: pytest.MonkeyPatch
) -> None:
    url, handler = keeper
    sink = sink_at(url)
    assert sink is not None
    monkeypatch.delenv("SSL_CERT_FILE", raising=False)
    if url.startswith("https"):
        with pytest.raises(NotAccepted, match="SSLCertVerificationError"):
            sink.put("one.txt", NOTE)
        assert handler.kept == {}


def test_an_address_that_nobody_answers_at_is_named() -> None:
    sink = sink_at("https://127.0.0.1:1/kept")
    assert sink is not None
    with pytest.raises(NotAccepted, match=r"127\.0\.0\.1:1 cannot be reached: Connection"):
        sink.put("one.txt", NOTE)


def test_no_place_is_no_sink() -> None:
    assert sink_at("") is None
