"""A collector of spans: a server that takes OTLP over HTTP, and keeps what comes as it came."""

import gzip
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from tests.support.providers.server import ScriptedServer


@dataclass(frozen=True)
class Seen:
    name: str
    scope: str
    role: str
    trace_id: str
    span_id: str
    parent_id: str
    attributes: dict[str, Any]


class Collector(ScriptedServer):
    """What has come so far."""

    def __init__(self) -> None:
        super().__init__()
        self.route("traces", "POST", "/v1/traces", lambda _: (200, None, {}))

    @property
    def bodies(self) -> list[bytes]:
        """What it was sent, unpacked."""
        return [
            gzip.decompress(each.body)
            if each.headers.get("content-encoding") == "gzip"
            else each.body
            for each in self.asked("traces")
        ]

    def spans(self) -> list[Seen]:
        return [each for body in self.bodies for each in _spans(body)]

    def of(self, trace_id: str) -> list[Seen]:
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
