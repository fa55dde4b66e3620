"""One request is one trace, through the queue to the refund, and nothing personal is in it."""

import re
import signal
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import urlopen
from uuid import UUID, uuid4

import pytest
from eventsourcing.persistence import StoredEvent
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, Status, StatusCode

from app.bootstrap.container import Container
from app.settings import Settings, WrongSetting
from app.watch import spans, tracing
from app.watch.logging import working
from domain.links.handover import address_of
from tests.house.running import COMES_UP_S
from tests.house.system import System
from tests.installation import wait_until
from tests.plan_files import import_plans, plan
from tests.scenarios.conftest import partner_of
from tests.servers.databases import Databases
from tests.support.collector import Collector, Seen
from tests.support.providers.esimgo import KEY, EsimGoServer

ROOT = Path(__file__).parents[3]
BUNDLE = "esim_1GB_7D_FR_V2"
CALLER = "0af7651916cd43dd8448eb211c80319c"
CALLING = "b7ad6b7169203331"
NUMBER = "+447400123456"
ADDRESS = address_of(UUID(CALLER), b"a traveller's id")


@pytest.fixture
def collected() -> Iterator[Collector]:
    with Collector() as made:
        yield made


@pytest.fixture
def network() -> Iterator[EsimGoServer]:
    with EsimGoServer(Container(Settings.from_env({})).clock) as made:
        yield made


@pytest.fixture
def tracing_to(collected: Collector, network: EsimGoServer) -> dict[str, str]:
    """Settings of an installation that traces, and whose network is called over HTTP."""
    return {
        "OTEL_EXPORTER_OTLP_ENDPOINT": collected.url,
        "OTEL_BSP_SCHEDULE_DELAY": "200",
        "SANDBOX": "false",
        "NETWORK_PROVIDER": "simulated,esimgo",
        "ESIMGO_API_KEY": KEY,
        "ESIMGO_URL": network.url,
        "PROVISIONING_DEADLINE_S": "5",
    }


@pytest.fixture
def system(
    tmp_path: Path, databases: Databases, broker_url: str, tracing_to: dict[str, str]
) -> Iterator[System]:
    """An installation of several processes."""
    url = databases.new()
    made = System(tmp_path, url, broker_url, **tracing_to)
    yield made
    made.close()
    databases.drop(url)


@pytest.fixture
def small_system(tmp_path: Path, tracing_to: dict[str, str]) -> Iterator[System]:
    """An installation of one process."""
    made = System(tmp_path, f"sqlite:///{tmp_path}/service.db", "memory://", **tracing_to)
    yield made
    made.close()


def fail_to_buy(system: System, collected: Collector, *roles: str) -> list[str]:
    """Buy a plan that the network does not know, in a trace of ours; return what no span holds."""
    system.command("migrate")
    partner = partner_of(system)
    offered = plan("Scripted", network="esimgo", provider_plan_id=BUNDLE)
    import_plans(system.container, offered)
    started = [system.start(role) for role in roles]
    for each in started:
        each.comes_up()
    wait_until(lambda: partner.authorize().status == 200, COMES_UP_S)
    plans = partner.ask("GET", "/v1/plans?per_page=100").data["data"]
    bought = next(each["id"] for each in plans if each["provider_plan_id"] == BUNDLE)
    traced = {"traceparent": f"00-{CALLER}-{CALLING}-01", "tracestate": f"them={NUMBER}"}
    reply = partner.ask("POST", "/v1/links", {"plan_id": bought, "name": NUMBER}, traced)
    assert reply.status == 502, reply
    assert reply.json["meta"]["request_id"] == str(UUID(CALLER))
    partner.ask("POST", f"/number-lookup?phone_number=%2B{NUMBER[1:]}")
    partner.ask("GET", f"/v1/links/{NUMBER}")
    for path in (ADDRESS, f"{ADDRESS}/qr.png"):
        with pytest.raises(HTTPError, match="404"):  # A traveller's, that nobody has made.
            urlopen(f"{partner.url}/e/{path}")  # noqa: S310  # Our own URL.
    wait_until(lambda: any("wallet.refunded" in str(each) for each in collected.of(CALLER)), 20.0)
    for process in started:
        process.signal(signal.SIGTERM)
    assert {process.ended() for process in started} == {0}  # What is left is sent first.
    return [
        NUMBER[1:],
        KEY,
        ADDRESS,
        "them=",
        partner.headers()["Authorization"][-20:],
        "FROM",
        BUNDLE,
    ]


def check_trace(seen: list[Seen], web: str, dispatcher: str, worker: str) -> None:
    """The spans of one trace go from the request to the refund."""
    [request] = in_it(seen, web, "flask")
    assert (request.name, request.parent_id) == ("POST /v1/links", CALLING)
    work = [each for each in in_it(seen, worker, "app") if each.name == "work_link"]
    dispatched = [each for each in in_it(seen, dispatcher, "app") if "dispatch" in each.name]
    assert work
    assert {each.parent_id for each in work} <= {each.span_id for each in dispatched}
    [call] = in_it(seen, worker, "urllib3")
    assert call.attributes["net.peer.name"] == "127.0.0.1"
    assert call.parent_id in {each.span_id for each in work}
    refunds = [each for each in seen if "wallet.refunded" in each.attributes.get("events", [])]
    assert [(each.role, each.name) for each in refunds] == [(worker, "commit")]


def in_it(spans: list[Seen], role: str, scope: str) -> list[Seen]:
    return [each for each in spans if each.role == role and each.scope.endswith(scope)]


@pytest.mark.soak
def test_a_purchase_that_fails_is_one_trace_through_all_processes(
    system: System, collected: Collector
) -> None:
    secret = fail_to_buy(system, collected, "web", "dispatcher", "worker", "projector")
    seen = collected.of(CALLER)
    check_trace(seen, "web", "dispatcher", "worker")
    assert in_it(seen, "web", "psycopg")
    assert in_it(seen, "worker", "psycopg")
    assert [each for each in secret if each.encode() in b"".join(collected.bodies)] == []


@pytest.mark.slow
def test_a_purchase_that_fails_is_one_trace_from_the_request_to_the_refund(
    small_system: System, collected: Collector
) -> None:
    secret = fail_to_buy(small_system, collected, "serve")
    check_trace(collected.of(CALLER), "serve", "serve", "serve")
    assert [each for each in secret if each.encode() in b"".join(collected.bodies)] == []


def test_who_has_an_endpoint_without_the_packages_is_told_so(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "app.watch.spans", None)  # As where a package is missing.
    settings = Settings.from_env({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:4318"})
    with pytest.raises(WrongSetting, match=r"requirements-tracing\.lock"):
        tracing.start(settings, "worker")


LOADS = re.compile(r"(?m)^(from|import) (opentelemetry|app\.watch(\.spans| import .*spans))")


def test_without_an_endpoint_nothing_of_opentelemetry_is_loaded() -> None:
    """It is an extra; so no file imports it, or what does, as it is loaded itself."""
    files = (each for room in ("app", "workers") for each in (ROOT / room).rglob("*.py"))
    assert [each.name for each in files if LOADS.search(each.read_text("utf-8"))] == ["spans.py"]


def ended(
    name: str, kind: SpanKind, attributes: dict[str, Any], *errors: Exception
) -> ReadableSpan:
    """Return a span as a library leaves it."""
    kept = InMemorySpanExporter()
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(kept))
    span = provider.get_tracer("test").start_span(name, kind=kind, attributes=attributes)
    for error in errors:
        span.record_exception(error)
        span.set_status(Status(StatusCode.ERROR, str(error)))
    span.end()
    return kept.get_finished_spans()[0]


def test_what_leaves_the_process_is_a_list_of_known_attributes() -> None:
    known = {"http.method": "GET", "http.route": "/v1/links/<identifier>"}
    given = {
        **known,
        "http.target": f"/v1/links/{NUMBER}?q=1",
        "net.peer.name": "192.0.2.7",
        "request_id": NUMBER,
    }
    span = spans.safe(ended(f"GET /v1/links/{NUMBER}", SpanKind.SERVER, given, ValueError(NUMBER)))
    assert span.name == "GET /v1/links/<identifier>"
    shown = {**known, "request_id": "[phone]", "error.type": "ValueError"}
    assert dict(span.attributes or {}) == shown
    assert (span.events, span.status.description) == ((), None)


def test_a_request_that_no_route_takes_has_no_path() -> None:
    span = spans.safe(ended(f"GET /{NUMBER}", SpanKind.SERVER, {"http.method": "GET"}))
    assert span.name == "GET -"


def test_a_statement_is_its_first_word() -> None:
    statement = {"db.statement": f"SELECT '{NUMBER}'", "db.system": "postgresql"}
    span = spans.safe(ended("SELECT", SpanKind.CLIENT, statement))
    assert (span.name, dict(span.attributes or {})) == ("SELECT", {"db.system": "postgresql"})
    assert spans.safe(ended(NUMBER, SpanKind.CLIENT, {})).name == "CLIENT"


def test_the_id_of_a_trace_is_that_of_its_request() -> None:
    assert f"{spans.trace_id_of(str(UUID(CALLER))):032x}" == CALLER
    assert spans.trace_id_of("order-7") == spans.trace_id_of("order-7") != spans.trace_id_of("7")
    with working(request_id="order-7"):
        assert spans.Ids().generate_trace_id() == spans.trace_id_of("order-7")
    assert spans.Ids().generate_trace_id() != spans.trace_id_of("order-7")


@pytest.mark.parametrize(
    ("own", "followed"), [(None, True), (str(UUID(CALLER)), True), ("order-7", False)]
)
def test_a_trace_is_followed_by_a_request_without_an_id_of_its_own(
    own: str | None,
    followed: bool,  # noqa: FBT001  # A column of the table.
) -> None:
    seen = {"HTTP_TRACEPARENT": f"00-{CALLER}-{CALLING}-01", "HTTP_TRACESTATE": "them=1"}
    if own is not None:
        seen["HTTP_X_REQUEST_ID"] = own
    spans.following(lambda environ, _: seen.update(environ) or [])(seen, lambda *_: None)
    assert "HTTP_TRACESTATE" not in seen
    assert ("HTTP_TRACEPARENT" in seen) == followed
    assert seen["HTTP_X_REQUEST_ID"] == (own or str(UUID(CALLER)))


def test_a_statement_for_nobody_is_no_trace() -> None:
    kept = InMemorySpanExporter()
    provider = TracerProvider(shutdown_on_exit=False, id_generator=spans.Ids())
    provider.add_span_processor(spans.SafeProcessor(kept))
    its = object.__new__(spans.Spans)
    its.tracer = tracer = provider.get_tracer("test")
    start = partial(tracer.start_span, kind=SpanKind.CLIENT)
    start("SELECT").end()
    of_another = StoredEvent(uuid4(), 1, "done", b'{"request_id": "order-7"}')
    with tracer.start_as_current_span("work_link"):
        its.committing(lambda _: start("UPDATE").end(), [of_another])
    provider.shutdown()
    traces = {each.name: each.context.trace_id for each in kept.get_finished_spans()}
    assert traces.pop("commit") == spans.trace_id_of("order-7")
    assert traces.keys() == {"UPDATE", "work_link"}
