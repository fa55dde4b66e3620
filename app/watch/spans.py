"""The spans of OpenTelemetry's Flask, psycopg and urllib3, and ours; with nothing personal.

All that is done for a request is one trace, because every event keeps the id of its request and the
id of the trace is made of that one. Only known attributes leave the process.
"""

import re
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from hashlib import sha256
from typing import TYPE_CHECKING, Any
from uuid import UUID
from wsgiref.types import StartResponse, WSGIApplication

from eventsourcing.persistence import StoredEvent
from eventsourcing.utils import get_topic
from opentelemetry import context, propagate, trace
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.instrumentation.flask import FlaskInstrumentor
from opentelemetry.instrumentation.psycopg import PsycopgInstrumentor
from opentelemetry.instrumentation.urllib3 import URLLib3Instrumentor
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.sdk.trace.id_generator import RandomIdGenerator
from opentelemetry.trace import SpanKind, Status
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from app.watch.logging import cause_of, mask, request_id_here, working
from app.watch.metrics import release
from app.watch.tracing import Tracing
from domain.log.aggregate import Event
from domain.log.log import Insert

if TYPE_CHECKING:
    from flask import Flask

EXPORT_S = 1.0  # A process sends at most four batches at its end, which must not take long.
TOPICS_MAX = 20  # Of one commit.
TRACEPARENT = TraceContextTextMapPropagator()
# Nothing else is sent: no path, query, address of a client, statement, or text of an error.
ATTRIBUTES = {
    *("http.method", "http.route", "http.status_code", "db.system", "db.name"),
    *("request_id", "events", "error.type"),
}
PEER = {"net.peer.name", "net.peer.port"}  # A server of ours or a provider, if we have called.
# What the libraries name spans by: the first word of a statement, or a method.
NAME = re.compile(r"[A-Za-z_.-]{1,64}(?: [a-z_.-]{1,64})?")


def trace_id_of(request_id: str) -> int:
    """Return the trace of a request: its id if that is a UUID, as ours are, else a hash of it."""
    with suppress(ValueError):
        if number := UUID(request_id).int:
            return number
    return int.from_bytes(sha256(request_id.encode()).digest()[:16])


class Ids(RandomIdGenerator):
    """Begins a trace with the id that the request of this thread stands for, if there is one."""

    def generate_trace_id(self) -> int:
        request_id = request_id_here()
        return trace_id_of(request_id) if request_id else super().generate_trace_id()


class SafeProcessor(BatchSpanProcessor):
    """Sends what is safe, and no statement or call for nobody, such as a follower's looks."""

    def on_end(self, span: ReadableSpan) -> None:
        if span.parent is not None or span.kind is not SpanKind.CLIENT:
            super().on_end(safe(span))


def safe(span: ReadableSpan) -> ReadableSpan:
    known = ATTRIBUTES if span.kind is SpanKind.SERVER else ATTRIBUTES | PEER
    given: dict[str, Any] = {"request_id": request_id_here(), **(span.attributes or {})}
    for event in span.events:
        given["error.type"] = (event.attributes or {}).get("exception.type")
    attributes = {
        name: mask(value) if isinstance(value, str) else value
        for name, value in given.items()
        if name in known and value is not None
    }
    name = span.name if NAME.fullmatch(span.name) else str(span.kind.name)
    if span.kind is SpanKind.SERVER:
        name = f"{attributes.get('http.method')} {attributes.get('http.route', '-')}"
    return ReadableSpan(
        name,
        span.get_span_context(),
        span.parent,
        span.resource,
        attributes,
        kind=span.kind,
        status=Status(span.status.status_code),
        start_time=span.start_time,
        end_time=span.end_time,
        instrumentation_scope=span.instrumentation_scope,
    )


class Spans(Tracing):
    """Traces this process; the variables OTEL_… of the SDK apply."""

    is_on = True

    def __init__(self, endpoint: str, role: str) -> None:
        about = {"service.name": "carrier-links", "service.version": release(), "role": role}
        provider = TracerProvider(resource=Resource.create(about), id_generator=Ids())
        exporter = OTLPSpanExporter(f"{endpoint}/v1/traces", timeout=EXPORT_S)
        provider.add_span_processor(SafeProcessor(exporter))
        trace.set_tracer_provider(provider)
        # Not baggage, which a stranger may fill.
        propagate.set_global_textmap(TRACEPARENT)
        PsycopgInstrumentor().instrument()
        URLLib3Instrumentor().instrument(request_hook=_on_call)
        self.tracer = trace.get_tracer("app")
        self.around = self.committing

    def watch(self, app: "Flask") -> None:
        FlaskInstrumentor.instrument_app(app, enable_commenter=False)  # type: ignore[no-untyped-call]  # Of the library.
        app.wsgi_app = following(app.wsgi_app)  # type: ignore[assignment, method-assign]  # Flask's way.

    @contextmanager
    def dispatching(self, event: Event) -> Iterator[None]:
        name = f"dispatch {get_topic(type(event))}"
        with working(request_id=event.request_id), self.tracer.start_as_current_span(name):
            yield

    def carry(self, options: dict[str, Any]) -> None:
        propagate.inject(options)

    def working(self, message: Any) -> AbstractContextManager[object]:
        # The trace of whoever published it: its work is in another thread, if not process.
        parent = propagate.extract(message.options)
        return self.tracer.start_as_current_span(message.actor_name, parent, SpanKind.CONSUMER)

    def committing(self, insert: Insert, stored: Sequence[StoredEvent]) -> Any:
        """Add a span to each request of one commit; the committer makes one for many requests."""
        started_ns = time.time_ns()
        inserted = insert(stored)
        topics = defaultdict[str, dict[str, None]](dict)
        for event in stored:
            topics[cause_of(event).get("request_id", "")][event.topic] = None
        here = trace.get_current_span().get_span_context().trace_id
        for request_id, named in topics.items():
            parent = None if here == trace_id_of(request_id) else context.Context()
            with working(request_id=request_id):
                span = self.tracer.start_span("commit", parent, start_time=started_ns)
                span.set_attribute("events", [*named][:TOPICS_MAX])
                span.end()
        return inserted


def _on_call(span: trace.Span, pool: Any, _: object) -> None:
    span.set_attributes({"net.peer.name": pool.host, "net.peer.port": pool.port})


def following(app: WSGIApplication) -> WSGIApplication:
    """Follow the trace of a caller whose request brings no id of its own.

    Its trace becomes the request's id, so that the events keep it. Otherwise it is not used.
    """

    def run(environ: dict[str, Any], start: StartResponse) -> Any:
        environ.pop("HTTP_TRACESTATE", None)  # A stranger's text.
        found = TRACEPARENT.extract({"traceparent": environ.get("HTTP_TRACEPARENT", "")})
        caller = trace.get_current_span(found).get_span_context()
        if caller.is_valid:
            environ.setdefault("HTTP_X_REQUEST_ID", str(UUID(int=caller.trace_id)))
            if trace_id_of(environ["HTTP_X_REQUEST_ID"]) != caller.trace_id:
                del environ["HTTP_TRACEPARENT"]
        return app(environ, start)

    return run
