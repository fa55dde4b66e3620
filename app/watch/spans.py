"""The spans of OpenTelemetry's Flask, psycopg, urllib3 and pika, and ours; with nothing personal.

All that is done for a request is one trace, because every event keeps the id of its request and the
id of the trace is made of that one. Only known attributes leave the process.
"""

import re
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from hashlib import sha256
from threading import local
from typing import TYPE_CHECKING, Any, TypeVar
from uuid import UUID
from wsgiref.types import StartResponse, WSGIApplication

import msgspec
from dramatiq import Broker, Middleware
from dramatiq.broker import MessageProxy
from eventsourcing.persistence import StoredEvent
from eventsourcing.utils import get_topic
from opentelemetry import context, propagate, trace
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.instrumentation.flask import FlaskInstrumentor
from opentelemetry.instrumentation.pika import PikaInstrumentor
from opentelemetry.instrumentation.psycopg import PsycopgInstrumentor
from opentelemetry.instrumentation.urllib3 import URLLib3Instrumentor
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult
from opentelemetry.sdk.trace.id_generator import RandomIdGenerator
from opentelemetry.sdk.trace.sampling import Decision, Sampler, SamplingResult
from opentelemetry.trace import SpanKind, Status
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from app.watch.logging import EachMessage, carried, mask, request_id_here
from app.watch.metrics import release
from app.watch.tracing import Tracing
from domain.log.aggregate import Event

if TYPE_CHECKING:
    from flask import Flask

A = TypeVar("A")
R = TypeVar("R")

EXPORT_S = 1.0  # A process sends at most four batches at its end, which must not take long.
TOPICS_MAX = 20  # Of one commit.
TRACEPARENT = TraceContextTextMapPropagator()
# Nothing else is sent: no path, query, address of a client, statement, or text of an error.
KEPT = {
    *("http.method", "http.request.method", "http.route"),
    *("http.status_code", "http.response.status_code"),
    *("db.system", "db.name", "messaging.system", "messaging.destination", "messaging.operation"),
    *("request_id", "events"),
}
PEER = {"net.peer.name", "net.peer.port"}  # A server of ours or a provider, if we have called.
# What the libraries name spans by: the first word of a statement, a method, or a queue.
NAME = re.compile(r"[A-Za-z_.-]{1,64}(?: [a-z_.-]{1,64})?")


CAUSE: ContextVar[str | None] = ContextVar("cause", default=None)


class _Caused(msgspec.Struct):
    request_id: str = ""


_cause_of = msgspec.json.Decoder(_Caused).decode


@contextmanager
def caused(request_id: str) -> Iterator[None]:
    """Begin traces of this thread as those of a request."""
    before = CAUSE.set(request_id)
    try:
        yield
    finally:
        CAUSE.reset(before)


def trace_id_of(request_id: str) -> int:
    """Return the trace of a request: its id if that is a UUID, as ours are, else a hash of it."""
    with suppress(ValueError):
        if number := UUID(request_id).int:
            return number
    return int.from_bytes(sha256(request_id.encode()).digest()[:16])


class Ids(RandomIdGenerator):
    """Begins a trace with the id that the request of this thread stands for, if there is one."""

    def generate_trace_id(self) -> int:
        request_id = CAUSE.get() or request_id_here()
        return trace_id_of(request_id) if request_id else super().generate_trace_id()


class OfWork(Sampler):
    """Leaves out statements and calls for nobody, such as the looks of a follower at the log."""

    def __init__(self, inner: Sampler) -> None:
        self._inner = inner

    def should_sample(
        self,
        parent_context: context.Context | None,
        trace_id: int,
        name: str,
        kind: SpanKind | None = None,
        *rest: Any,
        **named: Any,
    ) -> SamplingResult:
        parent = trace.get_current_span(parent_context).get_span_context()
        if not parent.is_valid and kind in {SpanKind.CLIENT, SpanKind.PRODUCER}:
            return SamplingResult(Decision.DROP)
        return self._inner.should_sample(parent_context, trace_id, name, kind, *rest, **named)

    def get_description(self) -> str:
        return f"OfWork({self._inner.get_description()})"


def safe(span: ReadableSpan) -> ReadableSpan:
    """Return what of a span may leave the process."""
    known = KEPT if span.kind is SpanKind.SERVER else KEPT | PEER
    given = span.attributes or {}
    attributes: dict[str, Any] = {
        name: mask(value) if isinstance(value, str) else value
        for name, value in given.items()
        if name in known
    }
    for event in span.events:
        if kind := (event.attributes or {}).get("exception.type"):
            attributes["error.type"] = kind
    name = span.name if NAME.fullmatch(span.name) else str(span.kind.name)
    if span.kind is SpanKind.SERVER:
        method = attributes.get("http.method") or attributes.get("http.request.method")
        name = f"{method} {attributes.get('http.route', '-')}"
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


class SafeExporter(SpanExporter):
    """Sends what is safe."""

    def __init__(self, inner: SpanExporter) -> None:
        self._inner = inner

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        return self._inner.export([safe(each) for each in spans])

    def shutdown(self) -> None:
        self._inner.shutdown()


class Spans(Tracing):
    """Traces this process; the variables OTEL_… of the SDK apply."""

    is_on = True

    def __init__(self, endpoint: str, role: str) -> None:
        about = {"service.name": "carrier-links", "service.version": release(), "role": role}
        provider = TracerProvider(resource=Resource.create(about), id_generator=Ids())
        provider.sampler = OfWork(provider.sampler)
        exporter = OTLPSpanExporter(f"{endpoint}/v1/traces", timeout=EXPORT_S)
        provider.add_span_processor(BatchSpanProcessor(SafeExporter(exporter)))
        trace.set_tracer_provider(provider)
        # Not baggage, which a stranger may fill.
        propagate.set_global_textmap(TRACEPARENT)
        PsycopgInstrumentor().instrument()
        URLLib3Instrumentor().instrument(request_hook=_note_call)
        PikaInstrumentor().instrument()
        self.tracer = trace.get_tracer("app")

    def watch(self, app: "Flask") -> None:
        FlaskInstrumentor.instrument_app(  # type: ignore[no-untyped-call]  # Of the library.
            app,
            request_hook=lambda span, _: span.set_attribute("request_id", request_id_here() or "-"),
            enable_commenter=False,
        )
        app.wsgi_app = following(app.wsgi_app)  # type: ignore[assignment, method-assign]  # Flask's way.

    def middleware(self) -> list[Middleware]:
        return [Messages(self.tracer)]

    @contextmanager
    def dispatching(self, event: Event) -> Iterator[None]:
        name = f"dispatch {get_topic(type(event))}"
        with caused(event.request_id), self.tracer.start_as_current_span(name) as span:
            span.set_attribute("request_id", event.request_id)
            yield

    @contextmanager
    def committing(self, stored: Sequence[StoredEvent]) -> Iterator[None]:
        began_ns, code = time.time_ns(), trace.StatusCode.ERROR
        try:
            yield
            code = trace.StatusCode.UNSET
        finally:
            self._note_commits(stored, began_ns, Status(code))

    def _note_commits(self, stored: Sequence[StoredEvent], began_ns: int, status: Status) -> None:
        """Add a span to each request of one commit; the committer makes one for many requests."""
        topics = defaultdict[str, dict[str, None]](dict)
        for event in stored:
            topics[_cause_of(event.state).request_id][event.topic] = None
        here = trace.get_current_span().get_span_context().trace_id
        for request_id, named in topics.items():
            parent = None if here == trace_id_of(request_id) else context.Context()
            with caused(request_id):
                span = self.tracer.start_span("commit", parent, start_time=began_ns)
            span.set_attributes({"request_id": request_id, "events": [*named][:TOPICS_MAX]})
            span.set_status(status)
            span.end()

    def carried(self, run: Callable[[A], R]) -> Callable[[A], R]:
        here = context.get_current()

        def there(argument: A) -> R:
            token = context.attach(here)
            try:
                return run(argument)
            finally:
                context.detach(token)

        return carried(there)


def _note_call(span: trace.Span, pool: Any, _: object) -> None:
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


class Messages(EachMessage):
    """Carries the trace in the options of a message, from who publishes it to who works on it.

    The spans of pika end with the receipt, in the thread of a queue; the work is in another one.
    """

    def __init__(self, tracer: trace.Tracer) -> None:
        self._tracer = tracer
        self._here = local()

    def before_enqueue(self, broker: Broker, message: Any, delay: int | None) -> None:  # noqa: ARG002  # The signature is the library's.
        propagate.inject(message.options)

    def before_process_message(self, broker: Broker, message: MessageProxy) -> None:  # noqa: ARG002  # As above.
        span = self._tracer.start_span(
            message.actor_name, propagate.extract(message.options), SpanKind.CONSUMER
        )
        self._here.work = span, context.attach(trace.set_span_in_context(span))

    def ended(self, message: MessageProxy, outcome: str, error: BaseException | None) -> None:  # noqa: ARG002  # Of all that hear it.
        span, token = self._here.__dict__.pop("work", (None, None))
        if span is None:
            return
        if request_id := request_id_here():  # Known by now: the sweep's messages bring none.
            span.set_attribute("request_id", request_id)
        if error is not None:
            span.record_exception(error)
            span.set_status(Status(trace.StatusCode.ERROR))
        context.detach(token)
        span.end()
