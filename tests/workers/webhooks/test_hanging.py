"""Fifty endpoints hang for ten seconds; another partner and the lookups notice nothing."""

import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import quantiles
from threading import Event
from uuid import UUID

import pytest

from app.bootstrap.known_keys import ensure_keys
from app.processes.runtime import Runtime
from domain.lookups.bulk_job import BulkJob
from domain.money import format_amount
from domain.webhooks.commands import Draft
from tests.installation import Installation, Process, numbers, wait_until
from tests.projections.histories import create_job
from tests.seeds import Seed
from tests.workers.webhooks.receiver import Got, Receiver

HANGING = 50
DELAY_S_MAX = 5.0
TOLD = 100 if os.environ.get("SOAK") == "1" else 40
EVERY_S = 12 / TOLD  # So that the first ones that hang have failed by the end.


@pytest.fixture
def installation(tmp_path: Path, migrated: Seed) -> Iterator[Installation]:
    made = Installation(tmp_path, like=migrated, WEBHOOKS_ALLOW_PRIVATE="true")
    yield made
    made.close()


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with Receiver().running() as running:
        yield running


def endpoint(process: Process, owner: UUID, url: str) -> UUID:
    draft = Draft(owner, url, None, None, None)
    return process.webhooks.register(draft, process.cause())[0].id


def job_s(process: Process, owner: UUID) -> float:
    """Return how long a job of a hundred numbers takes."""
    began = time.monotonic()
    job_id = create_job(process, owner, numbers(100))
    wait_until(lambda: process.log.get(BulkJob, job_id).finished_at is not None)
    return time.monotonic() - began


def hanging_partner(process: Process, receiver: Receiver, path: str) -> UUID:
    """Make an organization with an endpoint that never answers."""
    owner = process.organization(name=path)
    receiver.answers[path] = lambda _: None
    endpoint(process, owner, receiver.url(path))
    return owner


def deposited(receiver: Receiver) -> list[Got]:
    return [each for each in receiver.got["/well"] if each.type == "wallet.deposited"]


@pytest.mark.any_database
@pytest.mark.slow
@pytest.mark.rounds
def test_fifty_that_hang_hold_up_neither_another_partner_nor_lookups(
    installation: Installation, receiver: Receiver
) -> None:
    process = installation.process()
    ensure_keys(process)
    runtime = Runtime(process, {"projector", "dispatcher", "worker"})
    hanging = [hanging_partner(process, receiver, f"/h-{index}") for index in range(HANGING)]
    well = process.organization("1000.00", name="well")
    endpoint(process, well, receiver.url("/well"))
    runtime.start()
    pulse, sent = Event(), dict[str, float]()
    try:
        alone_s = min(job_s(process, well) for _ in range(3))
        for index, owner in enumerate(hanging):
            for number in range(8):  # More than the places of an endpoint.
                process.accounts.deposit(owner, 1_000_000, f"h-{index}-{number}", process.cause())
        slowest_s = 0.0
        for number in range(TOLD):
            amount = 1_000_000 + number * 10_000  # By which it is known again.
            process.accounts.deposit(well, amount, f"w-{number}", process.cause())
            sent[format_amount(amount)] = time.monotonic()
            if number % 10 == 0:
                slowest_s = max(slowest_s, job_s(process, well))
            pulse.wait(EVERY_S)
        wait_until(lambda: len(deposited(receiver)) >= TOLD)
        delays = [each.at - sent[each.data["amount"]] for each in deposited(receiver)]
        hung = sum(bool(receiver.got[f"/h-{index}"]) for index in range(HANGING))
    finally:
        runtime.stop()
    p50, p99 = quantiles(delays, n=2)[0], quantiles(delays, n=100, method="inclusive")[98]
    told = (
        f"{hung} hang: p50 {p50:.2f} s, p99 {p99:.2f} s; a job {alone_s:.2f} s, {slowest_s:.2f} s"
    )
    sys.stderr.write(f"{told}\n")  # Shown with -s.
    assert hung == HANGING
    assert p99 <= DELAY_S_MAX
    assert slowest_s <= alone_s + DELAY_S_MAX
    ids = [each.id for each in receiver.got["/well"]]
    assert len(ids) == len({*ids})
