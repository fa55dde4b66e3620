"""Gauges read at each scrape: how far behind followers are, what waits, and for how long.

Databases and brokers may be unreachable, so each question has a thread of its own, and all have one
time limit. A process shows only the gauges of its role.
"""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future
from dataclasses import dataclass
from datetime import datetime
from math import nan
from queue import SimpleQueue
from threading import Lock, Thread
from typing import Generic, Literal, TypeVar

from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from domain.log.log import Log, Poisoned
from projections.engine.positions import Lag

ANSWER_S = 1.5  # How long a scrape waits for its answers, so that it ends within 2 s.

PROVIDER_GAUGES = {
    "lookup_provider_up": "0 while no lookup is let through to it.",
    "network_provider_up": "0 while its circuit is open.",
    "provider_drained": "1 while it gets no new work, by an operator's word.",
}

T = TypeVar("T")


class Asker(Generic[T]):
    """Asks one question in a thread. While a call hangs, later callers wait for its answer too.

    The thread stays, because connections belong to the thread that opened them.
    """

    def __init__(self, name: str, ask: Callable[[], T]) -> None:
        self.name = name
        self._ask = ask
        self._lock = Lock()
        self._asked: SimpleQueue[Future[T]] = SimpleQueue()
        self._pending: Future[T] | None = None
        self._thread: Thread | None = None

    def begin(self) -> "Future[T]":
        """Ask, or return the future of the question under way."""
        with self._lock:
            if self._thread is None:
                thread = Thread(target=self._run, name=f"asks {self.name}", daemon=True)
                thread.start()  # It may fail; then the next call tries again.
                self._thread = thread
            if self._pending is None or self._pending.done():
                self._pending = Future()
                self._asked.put(self._pending)
            return self._pending

    def _run(self) -> None:
        while True:
            future = self._asked.get()
            try:
                future.set_result(self._ask())
            except BaseException as error:  # noqa: BLE001  # The caller gets any error.
                future.set_exception(error)


class ScrapedGauges(Collector):
    """Asks at each scrape; a gauge reports which questions had no answer in time."""

    def __init__(self, askers: list[Asker[list[Metric]]]) -> None:
        self._askers = askers

    def describe(self) -> list[Metric]:
        """Return nothing, so that registration asks nothing."""
        return []

    def collect(self) -> Iterator[Metric]:
        """Yield the present values."""
        reached = GaugeMetricFamily(
            "scrape_part_reached",
            "0 when this part could not be asked at this scrape.",
            labels=["part"],
        )
        deadline = time.monotonic() + ANSWER_S
        begun = [(asker.name, asker.begin()) for asker in self._askers]
        for name, future in begun:
            families = answer_of(future, deadline)
            reached.add_metric([name], float(families is not None))
            yield from families or ()
        yield reached


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


@dataclass(frozen=True, slots=True)
class AuditState:
    """Ages of the last nightly audit, delivered checkpoint and backup, and what the audit found.

    Until there is a first one, the age is that of the log, so that an alert fires on none as well.
    `outside_s`, of the checkpoint, is None without a sink. `months_overdue` counts ended months
    that should be closed by now.
    """

    age_s: float
    failures: int
    outside_s: float | None
    months_overdue: int
    backup_s: float


@dataclass(frozen=True, slots=True)
class WebhookState:
    """How many deliveries wait, how late the oldest to a sound endpoint is, what was disabled."""

    pending: int
    late_s: float
    disabled: Mapping[str, int]


def show_providers(up: Mapping[tuple[str, str], bool]) -> list[Metric]:
    found: dict[str, GaugeMetricFamily] = {}
    for (name, provider), is_up in up.items():
        family = GaugeMetricFamily(name, PROVIDER_GAUGES[name], labels=["provider"])
        found.setdefault(name, family).add_metric([provider], float(is_up))
    return [*found.values()]


def show_followers(lags: Iterable[tuple[Lag, float | None]]) -> list[Metric]:
    events = GaugeMetricFamily("follower_lag_events", "Events left to follow.", labels=["name"])
    seconds = GaugeMetricFamily(
        "follower_lag_seconds", "Since when it has not been at the end.", labels=["name"]
    )
    failed = GaugeMetricFamily("follower_failed", "1 when it has stopped.", labels=["name"])
    for lag, lag_s in lags:
        events.add_metric([lag.name], lag.events)
        failed.add_metric([lag.name], float(lag.failure is not None))
        if lag_s is not None:
            seconds.add_metric([lag.name], lag_s)
    return [events, seconds, failed]


def show_audit(state: AuditState) -> list[Metric]:
    """Show the age of a checkpoint that nobody wants as NaN: no alert fires on it."""
    outside_s = nan if state.outside_s is None else state.outside_s
    outside = "Age of the newest checkpoint that the sink has accepted."
    return [
        GaugeMetricFamily("audit_failures", "What the last nightly audit found.", state.failures),
        GaugeMetricFamily("audit_age_seconds", "Age of the last nightly audit.", state.age_s),
        GaugeMetricFamily("checkpoint_outside_age_seconds", outside, outside_s),
        GaugeMetricFamily("months_overdue", "Months to close.", state.months_overdue),
        GaugeMetricFamily("backup_age_seconds", "Age of the last backup.", state.backup_s),
    ]


def show_database(used: float, most: float, lags: Mapping[str, int]) -> list[Metric]:
    told = "How far a standby is behind in replaying the log of the server."
    behind = GaugeMetricFamily("database_replication_lag_bytes", told, labels=["standby"])
    for standby, lag in lags.items():
        behind.add_metric([standby], lag)
    return [
        GaugeMetricFamily("database_connections", "Connections of all clients.", used),
        GaugeMetricFamily("database_connections_max", "How many there may be.", most),
        behind,
    ]


def show_readings(ages: Mapping[str, float]) -> list[Metric]:
    told = "Since when the link that has waited longest has no answer of its network."
    family = GaugeMetricFamily("oldest_reading_seconds", told, labels=["network"])
    for network, age_s in ages.items():
        family.add_metric([network], age_s)
    return [family]


def show_webhooks(state: WebhookState) -> list[Metric]:
    disabled = GaugeMetricFamily(
        "webhook_endpoints_disabled", "Endpoints that are told nothing.", labels=["reason"]
    )
    for reason, count in state.disabled.items():
        disabled.add_metric([reason], count)
    late = "How late the delivery is that has waited longest for an endpoint that works."
    return [
        GaugeMetricFamily("webhook_deliveries_pending", "Deliveries that wait.", state.pending),
        GaugeMetricFamily("webhook_delivery_late_seconds", late, state.late_s),
        disabled,
    ]


def show_work(job_s: float, job_idle_s: float, link_s: float) -> list[Metric]:
    return [
        GaugeMetricFamily(
            "oldest_unfinished_job_seconds", "Age of the oldest unfinished job.", job_s
        ),
        GaugeMetricFamily(
            "oldest_unfinished_job_idle_seconds",
            "Since when the longest idle unfinished job has not moved.",
            job_idle_s,
        ),
        GaugeMetricFamily(
            "oldest_unfinished_link_seconds",
            "Age of the oldest unfinished link or change of its plans or status.",
            link_s,
        ),
    ]


def show_queues(states: Iterable[tuple[str, int, int]]) -> list[Metric]:
    waiting = GaugeMetricFamily(
        "queue_messages", "Messages that wait for a worker.", labels=["queue"]
    )
    dead = GaugeMetricFamily(
        "queue_dead_messages", "Messages that were given up.", labels=["queue"]
    )
    for name, messages, letters in states:
        waiting.add_metric([name], messages)
        dead.add_metric([name], letters)
    return [waiting, dead]


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
