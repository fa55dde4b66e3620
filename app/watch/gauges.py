"""Gauges read at each scrape: how far behind followers are, what waits, and for how long.

Databases and brokers may be unreachable, so each question has a thread of its own, and all have one
time limit. A process shows only the gauges of its role.
"""

import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future
from datetime import datetime
from itertools import starmap
from threading import Lock, Thread
from typing import Generic, Literal, TypeVar

from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from domain.log.log import Log, Poisoned
from projections.engine.positions import Lag

PREFIX = "carrier_links_"  # Of every metric but `process_…`, which all programs in Python show.
ANSWER_S = 1.5  # How long a scrape waits for its answers, so that it ends within 2 s.

# What each gauge says, and its label if it has one.
GAUGES: Mapping[str, tuple[str, ...]] = {
    "lookup_provider_up": ("0 while no lookup is let through to it.", "provider"),
    "network_provider_up": ("0 while its circuit is open.", "provider"),
    "provider_drained": ("1 while it gets no new work, by an operator's word.", "provider"),
    "follower_lag_events": ("Events left to follow.", "name"),
    "follower_lag_seconds": ("Since when it has not been at the end.", "name"),
    "follower_failed": ("1 when it has stopped.", "name"),
    "audit_failures": ("What the last nightly audit found.",),
    "audit_age_seconds": ("Age of the last nightly audit.",),
    "checkpoint_outside_age_seconds": ("Age of the newest checkpoint that the sink has accepted.",),
    "months_overdue": ("Months to close.",),
    "backup_age_seconds": ("Age of the last backup.",),
    "database_connections": ("Connections of all clients.",),
    "database_connections_max": ("How many there may be.",),
    "database_replication_lag_bytes": (
        "How far a standby is behind in replaying the log of the server.",
        "standby",
    ),
    "database_inactive_slot_bytes": (
        "WAL that the server keeps for a standby or receiver that is not connected.",
        "slot",
    ),
    "oldest_reading_seconds": (
        "Since when the link that has waited longest has no answer of its network.",
        "network",
    ),
    "webhook_deliveries_pending": ("Deliveries that wait.",),
    "webhook_delivery_late_seconds": (
        "How late the delivery is that has waited longest for an endpoint that works.",
    ),
    "webhook_endpoints_disabled": ("Endpoints that are told nothing.", "reason"),
    "oldest_unfinished_job_seconds": ("Age of the oldest unfinished job.",),
    "oldest_unfinished_job_idle_seconds": (
        "Since when the longest idle unfinished job has not moved.",
    ),
    "oldest_unfinished_link_seconds": (
        "Age of the oldest unfinished link or change of its plans or status.",
    ),
    "queue_messages": ("Messages that wait for a worker.", "queue"),
    "scrape_part_reached": ("0 when this part could not be asked at this scrape.", "part"),
}
PROVIDER_GAUGES = ("lookup_provider_up", "network_provider_up", "provider_drained")

# What gauges show, by their names: a value, or one for each value of the label.
Values = Mapping[str, float | Mapping[str, float]]

T = TypeVar("T")


class SharedQuery(Generic[T]):
    """Asks one question in a thread. While a call hangs, later callers wait for its answer too."""

    def __init__(self, name: str, read: Callable[[], T]) -> None:
        self.name = name
        self._read = read
        self._lock = Lock()
        self._pending: Future[T] | None = None

    def query(self) -> "Future[T]":
        """Ask, or return the future of the question under way."""
        with self._lock:
            if self._pending is None or self._pending.done():
                self._pending = in_thread(f"asks {self.name}", self._read)
            return self._pending


def in_thread(name: str, read: Callable[[], T]) -> "Future[T]":
    """Read in a thread of this name, because the answer may never come; an error is one too."""
    answer: Future[T] = Future()

    def run() -> None:
        try:
            answer.set_result(read())
        except BaseException as error:  # noqa: BLE001  # The caller gets any error.
            answer.set_exception(error)

    Thread(target=run, name=name, daemon=True).start()
    return answer


class ScrapedGauges(Collector):
    """Asks at each scrape; a gauge reports which questions had no answer in time."""

    def __init__(self, queries: list[SharedQuery[Values]]) -> None:
        self._queries = queries

    def describe(self) -> list[Metric]:
        """Return nothing, so that registration asks nothing."""
        return []

    def collect(self) -> Iterator[Metric]:
        deadline, reached = time.monotonic() + ANSWER_S, dict[str, float]()
        for name, future in [(each.name, each.query()) for each in self._queries]:
            values = answer_of(future, deadline)
            reached[name] = float(values is not None)
            yield from starmap(_family, (values or {}).items())
        yield _family("scrape_part_reached", reached)


def _family(name: str, shown: float | Mapping[str, float]) -> Metric:
    text, *label = GAUGES[name]
    if not isinstance(shown, Mapping):
        return GaugeMetricFamily(PREFIX + name, text, shown)
    family = GaugeMetricFamily(PREFIX + name, text, labels=label)
    for each, value in shown.items():
        family.add_metric([each], value)
    return family


def answer_of(future: "Future[T]", deadline: float) -> T | None:
    """Return an answer, or None if there is none by `deadline` on the monotonic clock."""
    try:
        return future.result(max(0.0, deadline - time.monotonic()))
    except Exception:  # noqa: BLE001  # A scrape must not fail with the database.
        return None


ProcessName = Literal["serve", "web", "worker", "dispatcher", "projector", "clock"]

ANSWERING: frozenset[ProcessName] = frozenset({"serve", "web"})
DECIDING: frozenset[ProcessName] = frozenset({"serve", "web", "worker"})  # These append events.
WORKING: frozenset[ProcessName] = frozenset({"serve", "worker"})
AUDITING: frozenset[ProcessName] = frozenset({"serve", "clock"})
WITH_BROKER: frozenset[ProcessName] = frozenset({"serve", "worker", "dispatcher", "clock"})
WITH_STANDBY: frozenset[ProcessName] = frozenset({"serve", "dispatcher", "projector", "clock"})


def behind_s(log: Log, lag: Lag, now: datetime) -> float | None:
    """Return for how many seconds a follower has not been at the end of the log.

    Read models note when they last were there. The dispatcher notes nothing, and a note from the
    future says nothing. In both cases this is the age of the oldest event that was not followed;
    None if that event cannot be read.
    """
    if lag.caught_up_at is not None and lag.caught_up_at <= now:
        return (now - lag.caught_up_at).total_seconds()
    try:
        ahead = log.read(lag.position, 1)
    except Poisoned:
        return None
    return max(0.0, (now - ahead[0].event.timestamp).total_seconds()) if ahead else 0.0
