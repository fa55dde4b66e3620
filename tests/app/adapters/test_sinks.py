"""Sinks: a checkpoint lies there whole under its name, or its sink says why not."""

import http.server
import ssl
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from app.adapters.sinks import sink_at
from tests.support.certificate import certificate
from workers.checkpoints import NotAccepted, Sink

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


def put(sink: Sink | None) -> None:
    assert sink is not None
    sink("one.txt", NOTE)


def test_a_directory_gets_a_file_maybe_twice_and_one_that_is_not_mounted_is_not_made(
    tmp_path: Path,
) -> None:
    for _ in range(2):
        put(sink_at(str(tmp_path)))
    assert [path.name for path in tmp_path.iterdir()] == ["one.txt"]
    assert (tmp_path / "one.txt").read_text("utf-8") == NOTE
    with pytest.raises(NotAccepted, match=r"CHECKPOINT_SINK: .*mount: No such"):
        put(sink_at(str(tmp_path / "mount")))
    assert sink_at("") is None


def test_an_address_accepts_by_its_status_if_its_certificate_is_trusted(
    keeper: tuple[str, type[Keeper]], monkeypatch: pytest.MonkeyPatch
) -> None:
    url, handler = keeper
    handler.closed = True
    with pytest.raises(NotAccepted, match="answers 503"):
        put(sink_at(url))
    handler.closed = False
    put(sink_at(url))
    assert handler.kept == {"/checkpoints/one.txt": NOTE}
    handler.kept.clear()
    monkeypatch.delenv("SSL_CERT_FILE", raising=False)
    if url.startswith("https"):
        with pytest.raises(NotAccepted, match="SSLCertVerificationError"):
            put(sink_at(url))
        assert handler.kept == {}


def test_an_address_that_nobody_answers_at_is_named() -> None:
    with pytest.raises(NotAccepted, match=r"127\.0\.0\.1:1 cannot be reached: Connection"):
        put(sink_at("https://127.0.0.1:1/kept"))


def test_a_directory_keeps_apart_what_several_put_there_at_once(tmp_path: Path) -> None:
    sink = sink_at(str(tmp_path))
    assert sink is not None

    def put_all(letter: str) -> None:
        for each in range(100):
            sink(f"{letter}-{each}", letter * 1000)

    with ThreadPoolExecutor(3) as pool:
        assert [*pool.map(put_all, "abc")] == [None] * 3
    files = [*tmp_path.iterdir()]
    assert len(files) == 300
    assert all(each.read_text() == each.name[0] * 1000 for each in files)
