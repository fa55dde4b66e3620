"""What a commit decided is counted exactly, in few steps."""

import json
import logging
from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID, uuid4

import pytest
from eventsourcing.persistence import StoredEvent
from prometheus_client import Counter

from app.watch import metrics
from app.watch.gauges import DECIDING
from app.watch.metrics import METRICS, PREFIX, Metrics
from domain.accounts.wallet import Wallet
from domain.links.plan_change import PlanChange
from domain.lookups.bulk_job import BulkJob
from tests.log_lines import said_by

CHARGE = {"kind": "lookup", "amount_micros": 5_000}


def stored(topic: str, stream_id: UUID | None = None, **state: object) -> StoredEvent:
    return StoredEvent(stream_id or uuid4(), 1, topic, json.dumps(state).encode())


def charge(**other: object) -> StoredEvent:
    return stored(Wallet.Charged.TOPIC, **{**CHARGE, **other}, reference={"type": "lookup"})


def counted(*commits: Sequence[StoredEvent]) -> Mapping[str, float]:
    """Return what is not zero."""
    counting = Metrics(lambda _: [], 0)
    for commit in commits:
        counting.appended(commit)

    def name_of(sample: Any) -> str:
        name = sample.name.removeprefix(PREFIX).removesuffix("_total")
        return f"{name} {' '.join(sample.labels.values())}".strip()

    return {
        name_of(sample): value
        for name in METRICS[DECIDING]
        for family in counting.made[name].collect()
        for sample in family.samples
        if (value := sample.value)
    }


def test_charges_of_a_commit_are_counted_by_kind_to_the_last_micro() -> None:
    lookups = [charge() for _ in range(30)]
    others = [charge(kind="activation", amount_micros=1_250_001), charge(amount_micros=1)]
    assert counted(lookups, [*others, *lookups]) == {
        "charges lookup": 61,
        "charges activation": 1,
        "charges_amount lookup": pytest.approx(0.300001, abs=1e-9),
        "charges_amount activation": pytest.approx(1.250001, abs=1e-9),
    }


def test_a_commit_of_many_charges_is_one_step_of_each_counter(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    counting, steps = Metrics(lambda _: [], 0), list[float]()
    monkeypatch.setattr(Counter, "inc", lambda _, amount=1: steps.append(amount))
    counting.appended([charge() for _ in range(30)])
    assert steps == [30, pytest.approx(0.15)]


def test_what_else_is_in_a_commit_is_counted_beside_its_charges() -> None:
    change = uuid4()
    refund = {"amount_micros": 10_000, "reference": {"type": "job", "id": "1"}}
    commit = [
        stored(BulkJob.ItemsCompleted.TOPIC, indexes=[0, 1, 2]),
        charge(kind="topup"),
        stored(BulkJob.ItemsFailed.TOPIC, indexes=[3, 4]),
        stored(Wallet.Refunded.TOPIC, **refund),
        stored(BulkJob.Finished.TOPIC),
        stored(BulkJob.Cancelled.TOPIC, count=7),
        stored(PlanChange.PlanAdditionDone.TOPIC, change),
        stored(PlanChange.Finished.TOPIC, change),
        stored(PlanChange.Finished.TOPIC),
    ]
    assert counted(commit) == {
        "bulk_items completed": 3,
        "bulk_items failed": 2,
        "bulk_items cancelled": 7,
        "bulk_jobs_finished": 2,
        "charges topup": 1,
        "charges_amount topup": pytest.approx(0.005),
        "refunds bulk_lookup": 1,
        "refunds_amount bulk_lookup": pytest.approx(0.01),
        "plan_changes finished": 1,
    }


def test_what_cannot_be_read_disturbs_nobody(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.ERROR)
    assert counted([StoredEvent(uuid4(), 1, Wallet.Charged.TOPIC, b"{")]) == {}
    assert said_by(caplog, metrics.__name__) == ["events were not counted"]
