"""Histories for read models and the auditor: lived by commands, or forged event by event."""

import random
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from uuid import UUID

from domain.aggregate import Event, Root
from domain.bulk_job import BulkJob
from domain.commands.bulk_create import BulkRequest
from domain.commands.single_lookup import LookupRequest
from domain.errors import NumberLookupUnavailable, Refused
from domain.organization import ApiClient, Organization
from tests.installation import PRICE_MICROS, Process, numbers

DOWN = "+15005550001"  # The sandbox number that no lookup answers.


def look_up(process: Process, organization_id: UUID, number: str = "+14155550100") -> UUID:
    """Buy one lookup; return its stream."""
    request = LookupRequest(organization_id, number, PRICE_MICROS, "USD", None)
    return process.single_lookup.run(request, process.cause()).lookup.id


def create_job(process: Process, organization_id: UUID, wanted: Sequence[str]) -> UUID:
    request = BulkRequest(organization_id, wanted, PRICE_MICROS, "USD", None)
    return process.bulk_create.run(request, process.cause())[0]


def finish_job(process: Process, job_id: UUID) -> None:
    for slice_index in range(process.log.get(BulkJob, job_id).slice_count):
        process.bulk_lookup.work(job_id, slice_index)


def append(process: Process, *aggregates: Root) -> int:
    return process.log.append(*aggregates)


def forge(process: Process, *events: Event) -> list[int]:
    """Write events as they are, past every decision; return their positions."""
    stored = [process.log.mapper.to_stored_event(event) for event in events]
    return [process.log.insert([each]) for each in stored]


def write_row(log_file: Path, stream: str, version: int, topic: str, state: bytes) -> int:
    """Insert a row of the log as a foreign program would; return its position."""
    with closing(sqlite3.connect(log_file)) as connection, connection:
        inserted = connection.execute(
            "INSERT INTO stored_events (originator_id, originator_version, topic, state)"
            " VALUES (?, ?, ?, ?) RETURNING rowid",
            (stream, version, topic, state),
        )
        return int(inserted.fetchone()[0])


class Life:
    """Whatever may happen to an installation, in an order that a seed decides."""

    def __init__(self, process: Process, seed: int) -> None:
        self._process = process
        self._dice = random.Random(seed)
        self._organizations = [process.organization("1.00", f"First {seed}")]
        self._clients = [process.client(None)]
        self._jobs: list[UUID] = []

    def go_on(self, steps: int) -> None:
        happenings = (
            self._register,
            self._change,
            self._touch_client,
            self._pay,
            self._look_up,
            self._look_up,
            self._create_job,
            self._work,
            self._work,
        )
        for _ in range(steps):
            try:
                self._dice.choice(happenings)()
            except (Refused, NumberLookupUnavailable):
                continue  # No money left, or the provider is down: that is life, too.

    def finish(self) -> None:
        for job_id in self._jobs:
            finish_job(self._process, job_id)

    def _register(self) -> None:
        amount = self._dice.choice(["", "0", "2.50"])
        organization_id = self._process.organization(amount, f"Number {self._dice.random()}")
        self._organizations.append(organization_id)
        self._clients.append(self._process.client(organization_id))

    def _change(self) -> None:
        cause, dice = self._process.cause(), self._dice

        def change(organization: Organization) -> None:
            organization.change_status(dice.choice(["active", "suspended", "inactive"]), cause)
            organization.change_price(dice.choice([None, 0, 7_000]), cause)
            organization.change_monthly_link_fee(dice.choice([0, 1_000_000]), cause)
            organization.switch_lookup(cause, enabled=dice.random() < 0.5)

        self._process.accounts.change_organization(dice.choice(self._organizations), change)

    def _touch_client(self) -> None:
        cause, dice = self._process.cause(), self._dice

        def change(client: ApiClient) -> None:
            if client.revoked or dice.random() < 0.2:
                client.revoke(cause)
            else:
                client.rotate_secret(f"{dice.random()}", cause)

        self._process.accounts.change_client(dice.choice(self._clients), change)

    def _pay(self) -> None:
        organization_id = self._dice.choice(self._organizations)
        if self._dice.random() < 0.5:
            reference = f"bank-{self._dice.randrange(10**9)}"
            self._process.accounts.deposit(
                organization_id, 500_000, reference, self._process.cause()
            )
        else:
            amount = self._dice.choice([-100_000, 250_000])
            self._process.accounts.adjust(
                organization_id, amount, "a correction", self._process.cause()
            )

    def _look_up(self) -> None:
        number = self._dice.choice([*numbers(5), DOWN])
        look_up(self._process, self._dice.choice(self._organizations), number)

    def _create_job(self) -> None:
        wanted = numbers(self._dice.choice([1, 3, 260]), start=self._dice.randrange(1_000))
        if self._dice.random() < 0.5:
            wanted = [*wanted, DOWN]
        organization_id = self._dice.choice(self._organizations)
        self._jobs.append(create_job(self._process, organization_id, wanted))

    def _work(self) -> None:
        if self._jobs:
            job_id = self._dice.choice(self._jobs)
            self._process.bulk_lookup.work(job_id, self._dice.randrange(2))
