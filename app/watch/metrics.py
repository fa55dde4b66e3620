"""The metrics of one process: its own counters, and the gauges that it reads at each scrape.

Events are counted when this process appends them. `build_info` shows which code runs, so that
releases that run side by side can be told apart.
"""

import hashlib
import logging
import platform
from collections import Counter as Tally
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from copy import copy
from pathlib import Path
from typing import Literal

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
from prometheus_client.core import Metric
from prometheus_client.registry import Collector

from app.watch.gauges import (
    ANSWERING,
    AUDITING,
    DECIDING,
    WITH_STANDBY,
    WORKING,
    Asker,
    ProcessName,
    ScrapedGauges,
    Values,
)
from domain.accounts.wallet import CHARGED_FOR, Wallet
from domain.links.link import Link
from domain.links.lost_order import LostOrder
from domain.links.plan_change import PlanChange
from domain.lookups.answers import UNAVAILABLE
from domain.lookups.bulk_job import BulkJob

PREFIX = "carrier_links_"
# Made after the prefix. The old names of all others go with the next entry of the change log, but
# `process_…`, which every program in Python shows.
NEW = {
    "lookup_fallovers",
    "backup_age_seconds",
    "database_connections",
    "database_connections_max",
    "database_replication_lag_bytes",
}

Mode = Literal["all", "livesum"]  # How the values of several processes are added up.

ROOMS = ("app", "domain", "projections", "workers")
DIGITS = 12


def release(root: Path = Path(__file__).parents[2]) -> str:
    """Return a digest of the source code."""
    digest = hashlib.sha256()
    for path in sorted(path for room in ROOMS for path in (root / room).rglob("*.py")):
        digest.update(path.relative_to(root).as_posix().encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:DIGITS]


MICROS = 1_000_000
KINDS = ("activation", "topup", "monthly_link_fee", "lookup", "bulk_lookup")
ITEM_ENDS = ("completed", "failed", "cancelled")
STEPS_DONE = {PlanChange.PlanAdditionDone.TOPIC, PlanChange.PlanRemovalDone.TOPIC}

logger = logging.getLogger(__name__)


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


class _Charge(msgspec.Struct, gc=False):
    """The counted fields of a charge; there are more charges than all other events."""

    kind: str
    amount_micros: int


_decode = msgspec.json.Decoder(_Facts).decode
_decode_charge = msgspec.json.Decoder(_Charge).decode


def _counter(name: str, text: str, labels: str = "", begun: Iterable[str] = ()) -> Counter:
    """Make a counter; series that have `begun` are shown at 0, as a rate needs a first value."""
    counter = Counter(name, text, labels.split(), registry=None)
    for each in begun:
        counter.labels(each)
    return counter


def _gauge(name: str, text: str, labels: str = "", *, mode: Mode = "all") -> Gauge:
    return Gauge(name, text, labels.split(), registry=None, multiprocess_mode=mode)


class EventCounters:
    """Counters of money and outcomes; called for every insert that succeeded, and never raises."""

    def __init__(self) -> None:
        self._charges = _counter("charges", "Charges.", "kind", KINDS)
        self._charged = _counter("charges_amount", "Sum of charges, in CURRENCY.", "kind", KINDS)
        told = "Refunds, by the kind of the charge."
        self._refunds = _counter("refunds", told, "kind", KINDS)
        self._refunded = _counter("refunds_amount", "Sum of refunds, in CURRENCY.", "kind", KINDS)
        told, ends = "Links whose creation has ended.", ("activated", "failed")
        self._links = _counter("links_provisioned", told, "outcome", ends)
        told, ends = "Plan changes that have ended.", ("finished", "failed")
        self._changes = _counter("plan_changes", told, "outcome", ends)
        told = "Items of bulk jobs that have ended."
        self._items = _counter("bulk_items", told, "outcome", ITEM_ENDS)
        told = "What we pay a network for and nobody has."
        self._left_over = _counter("orders_left_over", told)
        self._jobs = _counter("bulk_jobs_finished", "Bulk jobs that have ended.")
        self._rules = self._table()

    @property
    def collectors(self) -> list[Collector]:
        money = [self._charges, self._charged, self._refunds, self._refunded]
        return [*money, self._links, self._left_over, self._changes, self._items, self._jobs]

    def appended(self, stored: Sequence[StoredEvent]) -> None:
        """Count the events of one commit; add up charges of a kind before their counter is set."""
        try:
            charged = defaultdict[str, list[int]](list)
            has_ended = False
            for event in stored:
                if event.topic == Wallet.Charged.TOPIC:
                    charge = _decode_charge(event.state)
                    charged[charge.kind].append(charge.amount_micros)
                elif (rule := self._rules.get(event.topic)) is not None:
                    rule(_decode(event.state))
                elif event.topic == PlanChange.Finished.TOPIC:
                    has_ended = True
            for kind, amounts in charged.items():
                self._charges.labels(kind).inc(len(amounts))
                self._charged.labels(kind).inc(sum(amounts) / MICROS)
            if has_ended:
                self._note_changes(stored)
        except Exception:
            logger.exception("events were not counted")

    def _table(self) -> dict[str, Callable[[_Facts], None]]:
        return {
            Wallet.Refunded.TOPIC: self._refund,
            Link.Activated.TOPIC: lambda _: self._links.labels("activated").inc(),
            Link.ProvisioningFailed.TOPIC: lambda _: self._links.labels("failed").inc(),
            LostOrder.LeftOver.TOPIC: lambda _: self._left_over.inc(),
            Link.PlanLeftOver.TOPIC: lambda _: self._left_over.inc(),
            Link.EndpointLeftOver.TOPIC: lambda it: self._left_over.inc(it.attempt == 1),
            PlanChange.Failed.TOPIC: lambda _: self._changes.labels("failed").inc(),
            BulkJob.ItemsCompleted.TOPIC: lambda it: self._end("completed", len(it.indexes)),
            BulkJob.ItemsFailed.TOPIC: lambda it: self._end("failed", len(it.indexes)),
            BulkJob.Cancelled.TOPIC: self._cancel,
            BulkJob.Finished.TOPIC: lambda _: self._jobs.inc(),
        }

    def _refund(self, facts: _Facts) -> None:
        kind = CHARGED_FOR.get(facts.reference.type, "other")
        self._refunds.labels(kind).inc()
        self._refunded.labels(kind).inc(facts.amount_micros / MICROS)

    def _end(self, outcome: str, count: int) -> None:
        self._items.labels(outcome).inc(count)

    def _cancel(self, facts: _Facts) -> None:
        self._end("cancelled", facts.count)
        self._jobs.inc()

    def _note_changes(self, stored: Sequence[StoredEvent]) -> None:
        """Count the changes that did everything: they finish in the commit of their last step."""
        topics: Tally[tuple[object, str]] = Tally((e.originator_id, e.topic) for e in stored)
        for stream_id, topic in topics:
            if topic == PlanChange.Finished.TOPIC and any(
                (stream_id, step) in topics for step in STEPS_DONE
            ):
                self._changes.labels("finished").inc()


STORES = ("lookup_cache", "leases", "network_readings", "provider_paces", "rate_limits")
SOURCES = ("live", "cache", UNAVAILABLE)
HELD = "held"  # The outcome of a call that was never sent.
# From a lookup at a near provider to the longest call that a network is documented to take.
CALL_BUCKETS_S = (0.025, 0.05, 0.1, 0.25, 0.5, 1, 2, 5, 10, 30, 60, 180)

disable_created_metrics()  # type: ignore[no-untyped-call]  # They double the series, and nobody uses them.


class Metrics:
    """Counts from its creation on; `registry` selects the metrics that a process shows."""

    def __init__(
        self, askers: Callable[[ProcessName], list[Asker[Values]]], places_max: int
    ) -> None:
        """`askers` returns the questions of a process, which are asked at each scrape."""
        self._askers = askers
        self._events = EventCounters()
        self._make_for_http(places_max)
        self._make_for_work()
        self._make_for_providers()

    def _make_for_http(self, places_max: int) -> None:
        self._requests = _counter("http_requests", "Requests answered.", "method route status")
        self._seconds = Histogram(
            "http_request_duration_seconds", "Time to answer.", ["route"], registry=None
        )
        self._answered: dict[tuple[str, str, int], tuple[Counter, Histogram]] = {}
        told = "Requests that wait for the network."
        self.waiting = _gauge("http_waiting_places_in_use", told, mode="livesum")
        told = "How many requests may wait for the network; beyond it they get 503."
        self._places = _gauge("http_waiting_places", told, mode="livesum")
        self._places.set(places_max)
        told = "Tables that are being sent while they are read."
        self.downloads = _gauge("http_downloads_in_progress", told, mode="livesum")

    def _make_for_work(self) -> None:
        told = "Numbers looked up, by where the answer came from."
        self._lookups = _counter("lookups", told, "source")
        self._by_source = {source: self._lookups.labels(source) for source in SOURCES}
        told = "Errors of own stores that were done without."
        self._store_errors = _counter("store_errors", told, "store", STORES)
        self._messages = _counter("messages_worked", "Messages worked on.", "actor outcome")
        self._message_seconds = Histogram(
            "message_duration_seconds", "Time to work on a message.", ["actor"], registry=None
        )
        told = "Attempts to tell an endpoint, by the class of its answer or why there was none."
        ends = ("2xx", "3xx", "4xx", "5xx", "timeout")
        self._told = _counter("webhook_attempts", told, "outcome", ends)
        told = "1 in the copy that is active, 0 in a standby."
        self._active = _gauge("role_active", told, "role")

    def _make_for_providers(self) -> None:
        told = "Calls to the APIs of providers, by how they ended."
        self._calls = _counter("provider_calls", told, "provider outcome")
        self._call_seconds = Histogram(
            "provider_call_duration_seconds",
            "Time of a call to a provider's API, repeats apart.",
            ["provider"],
            registry=None,
            buckets=CALL_BUCKETS_S,
        )
        told = (
            "Lookups that went on to the next provider, by the one that had not answered and why."
        )
        self._fallovers = _counter("lookup_fallovers", told, "provider reason")
        told = "What we have left at a provider, in its currency."
        self._balances = _gauge("provider_balance", told, "provider")

    def answered(self, method: str, route: str, status: int, seconds: float) -> None:
        found = self._answered.get((method, route, status))
        if found is None:  # Looking up labels takes longer than counting.
            counter = self._requests.labels(method, route, str(status))
            found = self._answered[method, route, status] = (counter, self._seconds.labels(route))
        counter, histogram = found
        counter.inc()
        histogram.observe(seconds)

    def appended(self, stored: Sequence[StoredEvent]) -> None:
        self._events.appended(stored)

    def looked_up(self, source: str, count: int) -> None:
        """Count numbers that were answered from one source."""
        self._by_source[source].inc(count)

    def store_failed(self, store: str) -> None:
        """Count one error of an own store without which the request went on."""
        self._store_errors.labels(store).inc()

    def called(self, provider: str, outcome: str, seconds: float) -> None:
        """Count one call to a provider's API; the time of a call that was held back is left out."""
        self._calls.labels(provider, outcome).inc()
        if outcome != HELD:
            self._call_seconds.labels(provider).observe(seconds)

    def fell_over(self, provider: str, reason: str) -> None:
        """Count one lookup that a provider of a chain has not answered."""
        self._fallovers.labels(provider, reason).inc()

    def told(self, outcome: str) -> None:
        """Count one attempt to tell an endpoint."""
        self._told.labels(outcome).inc()

    def balance(self, provider: str, amount: float) -> None:
        """Show what we have left at a provider; NaN if that is not known."""
        self._balances.labels(provider).set(amount)

    def worked(self, actor: str, outcome: str, seconds: float) -> None:
        """Count one message that was handled."""
        self._messages.labels(actor, outcome).inc()
        self._message_seconds.labels(actor).observe(seconds)

    def activity(self, role: str) -> Callable[[bool], None]:
        """Return a function to report whether this copy of a role is active; at first it is not."""
        return self._active.labels(role).set

    def registry(self, role: ProcessName, counted: Collector | None = None) -> CollectorRegistry:
        """Return what a process shows; `counted` replaces its own counters."""
        registry = _BothNames()
        for collector in [counted] if counted is not None else self._counted(role):
            registry.register(collector)
        registry.register(ScrapedGauges(self._askers(role)))
        told = "Always 1; `release` is a digest of the code."
        code = Gauge("build_info", told, ["release", "python"], registry=registry)
        code.labels(release(), platform.python_version()).set(1)
        ProcessCollector(registry=registry)
        return registry

    def _counted(self, role: ProcessName) -> list[Collector]:
        stores, calls = self._store_errors, [self._calls, self._call_seconds, self._fallovers]
        shown: Mapping[frozenset[ProcessName], list[Collector]] = {
            ANSWERING: [
                self._requests,
                self._seconds,
                self.waiting,
                self._places,
                self.downloads,
            ],
            DECIDING: [self._lookups, stores, *calls, *self._events.collectors],
            WORKING: [self._messages, self._message_seconds, self._told],
            WITH_STANDBY: [self._active],
            AUDITING: [self._balances],
        }
        return [each for roles, found in shown.items() if role in roles for each in found]


class _BothNames(CollectorRegistry):
    """Shows each metric with our prefix, and beside it with its old name."""

    def collect(self) -> Iterator[Metric]:
        for family in super().collect():
            renamed = copy(family)
            renamed.name = f"{PREFIX}{family.name}"
            renamed.samples = [
                each._replace(name=f"{PREFIX}{each.name}") for each in family.samples
            ]
            yield renamed
            if family.name not in NEW:
                yield family
