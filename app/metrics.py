"""What operators watch, in the text format of Prometheus; no label ever holds a number or an id."""

from collections.abc import Iterator
from typing import Protocol

from prometheus_client import CollectorRegistry, Counter, Histogram, start_http_server
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from projections.health import Lag


class Watched(Protocol):
    """What is asked at each scrape; it may raise while a database is away."""

    def lags(self) -> list[Lag]:
        """How far each follower is behind."""
        ...

    def backlog(self) -> int:
        """How many messages wait for a worker."""
        ...

    def oldest_job_s(self) -> float:
        """For how many seconds the unfinished job that is longest idle has not moved."""
        ...

    def provider_is_up(self) -> bool:
        """Whether lookups are let through to the provider."""
        ...


class Metrics:
    """The metrics of one process, in a registry of their own."""

    def __init__(self, watched: Watched) -> None:
        self.registry = CollectorRegistry()
        self._requests = Counter(
            "http_requests",
            "Requests answered.",
            ["method", "route", "status"],
            registry=self.registry,
        )
        self._seconds = Histogram(
            "http_request_duration_seconds", "Time to answer.", ["route"], registry=self.registry
        )
        self.registry.register(_Scrape(watched))

    def answered(self, method: str, route: str, status: int, seconds: float) -> None:
        """Count one request."""
        self._requests.labels(method, route, str(status)).inc()
        self._seconds.labels(route).observe(seconds)

    def listen(self) -> None:
        """Nothing yet."""

    def serve(self, host: str, port: int) -> None:
        """Answer `/metrics` in a thread of its own. Raises OSError when the port is taken."""
        start_http_server(port, addr=host, registry=self.registry)


class _Scrape(Collector):
    """Asks at each scrape; what cannot be asked now is left out."""

    def __init__(self, watched: Watched) -> None:
        self._watched = watched

    def describe(self) -> list[Metric]:
        """Say nothing at registration, so that nothing is asked then."""
        return []

    def collect(self) -> Iterator[Metric]:
        """Yield what stands now."""
        for family in (self._followers, self._work):
            try:
                yield from family()
            except Exception:  # noqa: BLE001, S112  # A scrape must not fail with the database.
                continue

    def _followers(self) -> list[Metric]:
        lag = GaugeMetricFamily("follower_lag_events", "Events left to follow.", labels=["name"])
        failed = GaugeMetricFamily("follower_failed", "1 when it has stopped.", labels=["name"])
        for each in self._watched.lags():
            lag.add_metric([each.name], each.events)
            failed.add_metric([each.name], float(each.failure is not None))
        return [lag, failed]

    def _work(self) -> list[Metric]:
        up = float(self._watched.provider_is_up())
        return [
            GaugeMetricFamily("queue_messages", "Messages waiting.", self._watched.backlog()),
            GaugeMetricFamily(
                "oldest_unfinished_job_idle_seconds",
                "Since when the longest idle unfinished job has not moved.",
                self._watched.oldest_job_s(),
            ),
            GaugeMetricFamily("lookup_provider_up", "0 while the circuit is open.", up),
        ]
