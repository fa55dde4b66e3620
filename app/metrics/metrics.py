"""The metrics of one process: what it counts itself, and what it asks at each scrape."""

from collections.abc import Callable, Iterator, Sequence

from eventsourcing.persistence import StoredEvent
from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    ProcessCollector,
    disable_created_metrics,
)
from prometheus_client.core import Metric
from prometheus_client.registry import Collector

from app.metrics.asking import Asking
from app.metrics.build import build_info
from app.metrics.events import EventCounters
from app.metrics.lookups import UNAVAILABLE
from app.metrics.questions import Watched, askers
from app.metrics.roles import ANSWERING, DECIDING, WITH_STANDBY, WORKING, Role

STORES = ("lookup_cache", "leases", "network_readings")
SOURCES = ("live", "cache", UNAVAILABLE)

disable_created_metrics()  # type: ignore[no-untyped-call]  # They double the series; nobody asks.


class Metrics:
    """Counts from its making on; `registry` says which of it a process shows."""

    def __init__(self, watched: Watched, places_max: int) -> None:
        self._watched = watched
        self._events = EventCounters()
        self._make_for_http(places_max)
        self._make_for_work()

    def _make_for_http(self, places_max: int) -> None:
        self._requests = Counter(
            "http_requests", "Requests answered.", ["method", "route", "status"], registry=None
        )
        self._seconds = Histogram(
            "http_request_duration_seconds", "Time to answer.", ["route"], registry=None
        )
        self._answered: dict[tuple[str, str, int], tuple[Counter, Histogram]] = {}
        self.waiting = Gauge(
            "http_waiting_places_in_use",
            "Requests that wait for the network.",
            registry=None,
            multiprocess_mode="livesum",
        )
        self._places = Gauge(
            "http_waiting_places",
            "How many requests may wait for the network; beyond it they get 503.",
            registry=None,
            multiprocess_mode="livesum",
        )
        self._places.set(places_max)

    def _make_for_work(self) -> None:
        self._lookups = Counter(
            "lookups",
            "Numbers looked up, by where the answer came from.",
            ["source"],
            registry=None,
        )
        for source in SOURCES:
            self._lookups.labels(source)
        self._store_errors = Counter(
            "store_errors", "Errors of own stores that were done without.", ["store"], registry=None
        )
        for store in STORES:
            self._store_errors.labels(store)
        self._messages = Counter(
            "messages_worked", "Messages worked on.", ["actor", "outcome"], registry=None
        )
        self._message_seconds = Histogram(
            "message_duration_seconds", "Time to work on a message.", ["actor"], registry=None
        )
        self._active = Gauge(
            "role_active", "1 in the copy that is active, 0 in a standby.", ["role"], registry=None
        )

    def answered(self, method: str, route: str, status: int, seconds: float) -> None:
        """Count one request."""
        found = self._answered.get((method, route, status))
        if found is None:  # Looking for labels takes longer than counting.
            counter = self._requests.labels(method, route, str(status))
            found = self._answered[method, route, status] = (counter, self._seconds.labels(route))
        counter, histogram = found
        counter.inc()
        histogram.observe(seconds)

    def appended(self, stored: Sequence[StoredEvent]) -> None:
        """Count the events of one commit."""
        self._events.appended(stored)

    def looked_up(self, source: str, count: int) -> None:
        """Count numbers that were answered by one source."""
        self._lookups.labels(source).inc(count)

    def store_failed(self, store: str) -> None:
        """Count one error of an own store that nobody else hears of."""
        self._store_errors.labels(store).inc()

    def worked(self, actor: str, outcome: str, seconds: float) -> None:
        """Count one message."""
        self._messages.labels(actor, outcome).inc()
        self._message_seconds.labels(actor).observe(seconds)

    def activity(self, role: str) -> Callable[[bool], None]:
        """Return what tells whether this copy of a role is the active one; at first it is not."""
        return self._active.labels(role).set

    def registry(self, role: Role, counted: Collector | None = None) -> CollectorRegistry:
        """Return what a process shows; `counted` replaces its own counters by those of others."""
        registry = CollectorRegistry()
        for collector in [counted] if counted is not None else self._counted(role):
            registry.register(collector)
        registry.register(Asking(askers(self._watched, role)))
        registry.register(_Constant(build_info()))
        ProcessCollector(registry=registry)
        return registry

    def _counted(self, role: Role) -> list[Collector]:
        http = [self._requests, self._seconds, self.waiting, self._places]
        shown: list[Collector] = []
        shown += http if role in ANSWERING else []
        shown += (
            [self._lookups, self._store_errors, *self._events.collectors]
            if role in DECIDING
            else []
        )
        shown += [self._messages, self._message_seconds] if role in WORKING else []
        shown += [self._active] if role in WITH_STANDBY else []
        return shown


class _Constant(Collector):
    def __init__(self, family: Metric) -> None:
        self._family = family

    def collect(self) -> Iterator[Metric]:
        yield self._family
