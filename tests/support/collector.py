"""A collector of spans: a server that takes OTLP over HTTP, and keeps what comes as it came."""

import gzip
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest


@dataclass(frozen=True)
class Seen:
    """One span."""

    name: str
    scope: str
    role: str
    trace_id: str
    span_id: str
    parent_id: str
    attributes: dict[str, Any]


@dataclass
class Collector:
    """What has come so far."""

    url: str
    bodies: list[bytes] = field(default_factory=list)

    def spans(self) -> list[Seen]:
        return [each for body in [*self.bodies] for each in _spans(body)]

    def of(self, trace_id: str) -> list[Seen]:
        """Return the spans of one trace."""
        return [each for each in self.spans() if each.trace_id == trace_id]


def _spans(body: bytes) -> Iterator[Seen]:
    for sent in ExportTraceServiceRequest.FromString(body).resource_spans:
        about = _plain(sent.resource.attributes)
        assert about["service.name"] == "carrier-links"
        for scope in sent.scope_spans:
            for span in scope.spans:
                yield Seen(
                    span.name,
                    scope.scope.name,
                    about["role"],
                    span.trace_id.hex(),
                    span.span_id.hex(),
                    span.parent_span_id.hex(),
                    _plain(span.attributes),
                )


def _plain(attributes: Any) -> dict[str, Any]:
    found = {}
    for each in attributes:
        kind = each.value.WhichOneof("value")
        value = getattr(each.value, kind)
        found[each.key] = (
            [one.string_value for one in value.values] if kind == "array_value" else value
        )
    return found


@contextmanager
def collector() -> Iterator[Collector]:
    """Run a collector until the end of the block."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            assert self.path == "/v1/traces"
            body = self.rfile.read(int(self.headers["Content-Length"]))
            is_packed = self.headers.get("Content-Encoding") == "gzip"
            made.bodies.append(gzip.decompress(body) if is_packed else body)
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        made = Collector(f"http://127.0.0.1:{server.server_port}")
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield made
        server.shutdown()
