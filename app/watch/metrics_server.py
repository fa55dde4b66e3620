"""The HTTP port for probes and metrics: `/metrics`, `/livez` and `/readyz`."""

import json
import logging
import socket
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any, NamedTuple

from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest

from app.watch.gauges import ANSWER_S, SharedQuery

REQUEST_S = 10  # A client that sends more slowly is dropped.

logger = logging.getLogger(__name__)

# Says what is missing; None if nothing is.
Need = Callable[[], str | None]


class MetricsReply(NamedTuple):
    """One reply of this port."""

    status: int
    content_type: str
    body: bytes


class MetricsServer:
    """Listens as soon as it is made. Raises OSError when the port is taken."""

    def __init__(
        self, host: str, port: int, pages: Mapping[str, Callable[[], MetricsReply]]
    ) -> None:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        family, *_, address = found[0]
        server = type("Server", (_Server,), {"address_family": family})
        handler = type("Handler", (_Handler,), {"pages": pages})
        self._server: _Server = server(address[:2], handler)
        self.port = int(self._server.server_address[1])
        Thread(target=self._server.serve_forever, name="metrics", daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


def pages(
    registry: CollectorRegistry,
    needs: Mapping[str, Need],
    facts: Callable[[], Mapping[str, object]] = dict,
) -> dict[str, Callable[[], MetricsReply]]:
    """Return the pages of a process; `needs` are what it needs to work, by name.

    `/readyz` also shows `facts`, which do not affect its status.
    """
    sources = [SharedQuery(name, need) for name, need in needs.items()]
    return {
        "/metrics": lambda: MetricsReply(200, CONTENT_TYPE_LATEST, generate_latest(registry)),
        "/livez": lambda: _json(200, {"ok": True}),
        "/readyz": lambda: _readiness(sources, facts()),
    }


def _readiness(
    sources: Sequence[SharedQuery[str | None]], facts: Mapping[str, object]
) -> MetricsReply:
    deadline = time.monotonic() + ANSWER_S
    queries = [(source.name, source.query()) for source in sources]
    lines: list[str] = []
    for name, future in queries:
        try:
            missing = future.result(max(0.0, deadline - time.monotonic()))
        except TimeoutError:
            missing = f"{name}: no answer within {ANSWER_S} s"
        except Exception as error:  # noqa: BLE001  # The text of the error may hold a password.
            missing = f"{name}: {type(error).__name__}"
        lines += [missing] if missing else []
    return _json(503 if lines else 200, {"ok": not lines, "missing": lines, **facts})


def _json(status: int, body: Mapping[str, object]) -> MetricsReply:
    return MetricsReply(status, "application/json", json.dumps(body).encode())


class _Server(ThreadingHTTPServer):
    def handle_error(self, *_: object) -> None:
        """Log an error through our logging; a client that disconnects early is no error."""
        error = sys.exception()
        if not isinstance(error, OSError):
            logger.error("the port of probes and metrics failed", exc_info=error)


class _Handler(BaseHTTPRequestHandler):
    pages: Mapping[str, Callable[[], MetricsReply]]
    timeout = REQUEST_S
    server_version = "metrics"
    sys_version = ""

    def do_GET(self) -> None:
        status, content_type, body = self._page()
        self.send_response(status)
        self.send_header("Content-Type", content_type)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def _page(self) -> MetricsReply:
        page = self.pages.get(self.path.partition("?")[0])
        if page is None:
            return _json(404, {"ok": False})
        try:
            return page()
        except Exception:
            logger.exception("a page of probes and metrics failed")
            return _json(500, {"ok": False})

    do_HEAD = do_GET  # noqa: N815  # The name is the library's.

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002  # As above.
        """Log nothing, because scrapes would fill the log."""
