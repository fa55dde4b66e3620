"""The metrics of one process: its own counters, and the gauges that it reads at each scrape.

Events are counted when this process appends them. `build_info` shows which code runs, so that
releases that run side by side can be told apart.
"""

import hashlib
import logging
import platform
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, get_args

import msgspec
from eventsourcing.persistence import StoredEvent
from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    ProcessCollector,
    disable_created_metrics,
)

from app.watch.gauges import (
    ANSWERING,
    AUDITING,
    DECIDING,
    PREFIX,
    WITH_STANDBY,
    WORKING,
    ProcessName,
    ScrapedGauges,
    SharedQuery,
    Values,
)
from app.watch.lines import count_dropped
from app.watch.logging import bind_cause
from domain.accounts.wallet import CHARGED_FOR, Wallet
from domain.links.link import Link
from domain.links.lost_order import LostOrder
from domain.links.plan_change import PlanChange
from domain.lookups.answers import UNAVAILABLE
from domain.lookups.bulk_job import BulkJob
from workers.routes import QUEUES

ROOMS = ("app", "domain", "projections", "workers")
DIGITS = 12


def release(root: Path = Path(__file__).parents[2]) -> str:
    digest = hashlib.sha256()
    for path in sorted(path for room in ROOMS for path in (root / room).rglob("*.py")):
        digest.update(path.relative_to(root).as_posix().encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:DIGITS]


MICROS = 1_000_000
KINDS = ("activation", "topup", "monthly_link_fee", "lookup", "bulk_lookup")
ITEM_ENDS = ("completed", "failed", "cancelled")
STORES = ("lookup_cache", "leases", "network_readings", "provider_paces", "rate_limits")
SOURCES = ("live", "cache", UNAVAILABLE)
NOT_SENT = "held"  # The outcome of a call that was never sent.
# From a lookup at a near provider to the longest call that a network is documented to take.
CALL_BUCKETS_S = (0.025, 0.05, 0.1, 0.25, 0.5, 1, 2, 5, 10, 30, 60, 180)

Make = Callable[[str], Any]  # Makes the metric of a name.

logger = logging.getLogger(__name__)


def _counter(text: str, labels: str = "", initial: Iterable[str] = ()) -> Make:
    """Declare a counter; series in `initial` are shown at 0: a rate needs a first value."""

    def make(name: str) -> Counter:
        counter = Counter(name, text, labels.split(), registry=None)
        for each in initial:
            counter.labels(each)
        return counter

    return make


def _gauge(text: str, labels: str = "") -> Make:
    return lambda name: Gauge(name, text, labels.split(), registry=None)


def _seconds(text: str, label: str, buckets: Sequence[float] = Histogram.DEFAULT_BUCKETS) -> Make:
    return lambda name: Histogram(name, text, [label], registry=None, buckets=buckets)


# What each process shows of what it counts itself.
METRICS: Mapping[frozenset[ProcessName], Mapping[str, Make]] = {
    frozenset(get_args(ProcessName)): {
        "log_lines_dropped": _counter("Log lines lost, because nobody read them in time."),
    },
    ANSWERING: {
        "http_requests": _counter("Requests answered.", "method route status"),
        "http_request_duration_seconds": _seconds("Time to answer.", "route"),
        "http_waiting_places_in_use": _gauge("Requests that wait for the network."),
        "http_waiting_places": _gauge(
            "How many requests may wait for the network; beyond it they get 503."
        ),
        "http_connections": _gauge("Open connections."),
        "http_downloads_in_progress": _gauge("Tables that are being sent while they are read."),
    },
    DECIDING: {
        "lookups": _counter("Numbers looked up, by where the answer came from.", "source", SOURCES),
        "store_errors": _counter("Errors of own stores that were done without.", "store", STORES),
        "provider_calls": _counter(
            "Calls to the APIs of providers, by how they ended.", "provider outcome"
        ),
        "provider_call_duration_seconds": _seconds(
            "Time of a call to a provider's API, repeats apart.", "provider", CALL_BUCKETS_S
        ),
        "lookup_fallovers": _counter(
            "Lookups that went on to the next provider, by the one that had not answered and why.",
            "provider reason",
        ),
        "charges": _counter("Charges.", "kind", KINDS),
        "charges_amount": _counter("Sum of charges, in CURRENCY.", "kind", KINDS),
        "refunds": _counter("Refunds, by the kind of the charge.", "kind", KINDS),
        "refunds_amount": _counter("Sum of refunds, in CURRENCY.", "kind", KINDS),
        "links_provisioned": _counter(
            "Links whose creation has ended.", "outcome", ("activated", "failed")
        ),
        "orders_left_over": _counter("What we pay a network for and nobody has."),
        "plan_changes": _counter(
            "Plan changes that have ended.", "outcome", ("finished", "failed")
        ),
        "bulk_items": _counter("Items of bulk jobs that have ended.", "outcome", ITEM_ENDS),
        "bulk_jobs_finished": _counter("Bulk jobs that have ended."),
    },
    WORKING: {
        "messages_worked": _counter("Messages worked on.", "actor outcome"),
        "messages_given_up": _counter(
            "Messages that no actor of this release can read.", "queue", QUEUES
        ),
        "message_duration_seconds": _seconds("Time to work on a message.", "actor"),
        "webhook_attempts": _counter(
            "Attempts to tell an endpoint, by the class of its answer or why there was none.",
            "outcome",
            ("2xx", "3xx", "4xx", "5xx", "timeout"),
        ),
    },
    WITH_STANDBY: {
        "role_active": _gauge("1 in the copy that is active, 0 in a standby.", "role"),
    },
    AUDITING: {
        "provider_balance": _gauge("What we have left at a provider, in its currency.", "provider"),
    },
}


class _Reference(msgspec.Struct):
    type: str = ""


class _Facts(msgspec.Struct):
    """The few fields of a stored event that are counted; the others are not decoded."""

    kind: str = ""
    amount_micros: int = 0
    reference: _Reference = msgspec.field(default_factory=_Reference)
    indexes: list[int] = []
    count: int = 0
    attempt: int = 0


# A counter, its label if it has one, and by how much it rises; amounts are micro-units.
Counts = Sequence[tuple[str, str, int]]

_decode = msgspec.json.Decoder(_Facts).decode


def _charge(facts: _Facts) -> Counts:
    return ("charges", facts.kind, 1), ("charges_amount", facts.kind, facts.amount_micros)


def _refund(facts: _Facts) -> Counts:
    kind = CHARGED_FOR.get(facts.reference.type, "other")
    return ("refunds", kind, 1), ("refunds_amount", kind, facts.amount_micros)


def _cancel(facts: _Facts) -> Counts:
    return ("bulk_items", "cancelled", facts.count), ("bulk_jobs_finished", "", 1)


RULES: Mapping[str, Callable[[_Facts], Counts]] = {
    Wallet.Charged.TOPIC: _charge,
    Wallet.Refunded.TOPIC: _refund,
    Link.Activated.TOPIC: lambda _: [("links_provisioned", "activated", 1)],
    Link.ProvisioningFailed.TOPIC: lambda _: [("links_provisioned", "failed", 1)],
    LostOrder.LeftOver.TOPIC: lambda _: [("orders_left_over", "", 1)],
    Link.PlanLeftOver.TOPIC: lambda _: [("orders_left_over", "", 1)],
    Link.EndpointLeftOver.TOPIC: lambda it: [("orders_left_over", "", it.attempt == 1)],
    PlanChange.Failed.TOPIC: lambda _: [("plan_changes", "failed", 1)],
    BulkJob.ItemsCompleted.TOPIC: lambda it: [("bulk_items", "completed", len(it.indexes))],
    BulkJob.ItemsFailed.TOPIC: lambda it: [("bulk_items", "failed", len(it.indexes))],
    BulkJob.Cancelled.TOPIC: _cancel,
    BulkJob.Finished.TOPIC: lambda _: [("bulk_jobs_finished", "", 1)],
}
# A change that did everything finishes in the commit of its last step.
STEPS_DONE = {PlanChange.PlanAdditionDone.TOPIC, PlanChange.PlanRemovalDone.TOPIC}

disable_created_metrics()  # type: ignore[no-untyped-call]  # They double the series, and nobody uses them.


class Metrics:
    """Counts from its creation on; `registry` selects the metrics that a process shows."""

    def __init__(
        self, queries: Callable[[ProcessName], list[SharedQuery[Values]]], slots_max: int
    ) -> None:
        """`queries` returns the questions of a process, which are asked at each scrape."""
        self._queries = queries
        self.made = {
            name: make(PREFIX + name) for its in METRICS.values() for name, make in its.items()
        }
        self._series = cache(lambda name, *of: self.made[name].labels(*of))  # Labels are slow.
        self.waiting: Gauge = self.made["http_waiting_places_in_use"]
        self.downloads: Gauge = self.made["http_downloads_in_progress"]
        self.connections: Gauge = self.made["http_connections"]
        self.made["http_waiting_places"].set(slots_max)
        count_dropped(self.made["log_lines_dropped"].inc)

    def answered(self, method: str, route: str, status: int, seconds: float) -> None:
        self._series("http_requests", method, route, str(status)).inc()
        self._series("http_request_duration_seconds", route).observe(seconds)

    def appended(self, stored: Sequence[StoredEvent]) -> None:
        """Count the events of one commit, each counter in one step; never raises."""
        bind_cause(stored)  # Lines of the work that has brought them say whose it is.
        counts, done = defaultdict[tuple[str, str], int](int), set[object]()
        try:
            for event in stored:
                if (rule := RULES.get(event.topic)) is not None:
                    for name, label, count in rule(_decode(event.state)):
                        counts[name, label] += count
                elif event.topic in STEPS_DONE:
                    done.add(event.originator_id)
                elif event.topic == PlanChange.Finished.TOPIC and event.originator_id in done:
                    counts["plan_changes", "finished"] += 1
            for (name, label), count in counts.items():
                counter = self._series(name, label) if label else self.made[name]
                counter.inc(count / MICROS if name.endswith("_amount") else count)
        except Exception:
            logger.exception("events were not counted")

    def count(self, name: str, *labels: str) -> None:
        self._series(name, *labels).inc()

    def looked_up(self, source: str, count: int) -> None:
        self._series("lookups", source).inc(count)

    def called(self, provider: str, outcome: str, seconds: float) -> None:
        """Count one call to a provider's API; the time of a call that was held back is left out."""
        self.count("provider_calls", provider, outcome)
        if outcome != NOT_SENT:
            self._series("provider_call_duration_seconds", provider).observe(seconds)

    def worked(self, actor: str, outcome: str, seconds: float) -> None:
        self.count("messages_worked", actor, outcome)
        self._series("message_duration_seconds", actor).observe(seconds)

    def balance(self, provider: str, amount: float) -> None:
        """Show what we have left at a provider; NaN if that is not known."""
        self.made["provider_balance"].labels(provider).set(amount)

    def activity(self, role: str) -> Callable[[bool], None]:
        """Return a function to report whether this copy of a role is active; at first it is not."""
        report: Callable[[bool], None] = self.made["role_active"].labels(role).set
        return report

    def registry(self, role: ProcessName) -> CollectorRegistry:
        registry = CollectorRegistry()
        for name in (name for roles, its in METRICS.items() if role in roles for name in its):
            registry.register(self.made[name])
        registry.register(ScrapedGauges(self._queries(role)))
        text = "Always 1; `release` is a digest of the code."
        code = Gauge(f"{PREFIX}build_info", text, ["release", "python"], registry=registry)
        code.labels(release(), platform.python_version()).set(1)
        ProcessCollector(registry=registry)
        return registry
