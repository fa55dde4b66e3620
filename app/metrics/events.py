"""Counts what was decided, from the events that this process appends."""

import logging
from collections import Counter as Tally
from collections import defaultdict
from collections.abc import Callable, Sequence

import msgspec
from eventsourcing.persistence import StoredEvent
from prometheus_client import Counter
from prometheus_client.registry import Collector

from domain.accounts.wallet import Wallet
from domain.links.link import Link
from domain.links.plan_change import PlanChange
from domain.lookups.bulk_job import BulkJob

MICROS = 1_000_000
KINDS = ("activation", "topup", "monthly_link_fee", "lookup", "bulk_lookup")
# What a refund refers to, as the kind of the charge that it gives back.
REFUNDED = {"link": "activation", "plan_change": "topup", "job": "bulk_lookup", "lookup": "lookup"}
STEPS_DONE = {PlanChange.PlanAdditionDone.TOPIC, PlanChange.PlanRemovalDone.TOPIC}

logger = logging.getLogger(__name__)


class _Reference(msgspec.Struct):
    type: str = ""


class _Facts(msgspec.Struct):
    """The few fields of a stored event that are counted; the others are skipped undecoded."""

    kind: str = ""
    amount_micros: int = 0
    reference: _Reference = msgspec.field(default_factory=_Reference)
    indexes: list[int] = []


class _Charge(msgspec.Struct, gc=False):
    """The same of a charge, of which there are more than of all others."""

    kind: str
    amount_micros: int


_decode = msgspec.json.Decoder(_Facts).decode
_decode_charge = msgspec.json.Decoder(_Charge).decode


class EventCounters:
    """Money and outcomes; told of every insert that has succeeded, and never raises."""

    def __init__(self) -> None:
        self._charges = _by("kind", "charges", "Charges.")
        self._charged = _by("kind", "charges_amount", "Sum of charges, in CURRENCY.")
        self._refunds = _by("kind", "refunds", "Refunds, by the kind of the charge.")
        self._refunded = _by("kind", "refunds_amount", "Sum of refunds, in CURRENCY.")
        self._links = _by("outcome", "links_provisioned", "Links whose creation has ended.")
        self._changes = _by("outcome", "plan_changes", "Plan changes that have ended.")
        self._items = _by("outcome", "bulk_items", "Items of bulk jobs that have ended.")
        self._jobs = Counter("bulk_jobs_finished", "Bulk jobs that have ended.", registry=None)
        self._rules = self._table()
        self._begin_at_zero()

    @property
    def collectors(self) -> list[Collector]:
        """What to register."""
        money = [self._charges, self._charged, self._refunds, self._refunded]
        return [*money, self._links, self._changes, self._items, self._jobs]

    def appended(self, stored: Sequence[StoredEvent]) -> None:
        """Count the events of one commit; many charges of a kind are one step of their counter."""
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
            PlanChange.Failed.TOPIC: lambda _: self._changes.labels("failed").inc(),
            BulkJob.ItemsCompleted.TOPIC: lambda it: self._end("completed", it),
            BulkJob.ItemsFailed.TOPIC: lambda it: self._end("failed", it),
            BulkJob.Finished.TOPIC: lambda _: self._jobs.inc(),
        }

    def _refund(self, facts: _Facts) -> None:
        kind = REFUNDED.get(facts.reference.type, "other")
        self._refunds.labels(kind).inc()
        self._refunded.labels(kind).inc(facts.amount_micros / MICROS)

    def _end(self, outcome: str, facts: _Facts) -> None:
        self._items.labels(outcome).inc(len(facts.indexes))

    def _note_changes(self, stored: Sequence[StoredEvent]) -> None:
        """A change that did all it should finishes in the commit of its last step."""
        topics: Tally[tuple[object, str]] = Tally((e.originator_id, e.topic) for e in stored)
        for stream_id, topic in topics:
            if topic == PlanChange.Finished.TOPIC and any(
                (stream_id, step) in topics for step in STEPS_DONE
            ):
                self._changes.labels("finished").inc()

    def _begin_at_zero(self) -> None:
        """A rate needs a first value to start from."""
        for counter in (self._charges, self._charged, self._refunds, self._refunded):
            for kind in KINDS:
                counter.labels(kind)
        for counter, outcomes in (
            (self._links, ("activated", "failed")),
            (self._changes, ("finished", "failed")),
            (self._items, ("completed", "failed")),
        ):
            for outcome in outcomes:
                counter.labels(outcome)


def _by(label: str, name: str, text: str) -> Counter:
    return Counter(name, text, [label], registry=None)
