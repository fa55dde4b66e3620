"""The invariants of the design, each checked at every position of the log.

They are computed from the events alone and share no code with the aggregates that they check.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from uuid import UUID

from domain.aggregate import Event
from domain.application import Recorded
from domain.bulk_job import BulkJob, ItemRefund
from domain.number_lookup import NumberLookup, Price
from domain.wallet import Deposit, Wallet


@dataclass(slots=True)
class _Ledger:
    """What a wallet should hold."""

    organization_id: UUID
    currency: str
    balance_micros: int = 0
    sequence: int = 0


@dataclass(slots=True)
class _Job:
    """What a job has come to."""

    created: BulkJob.Created
    completed: int = 0
    failed: int = 0
    refunded_micros: int = 0
    ended: set[int] = field(default_factory=set)
    finished: bool = False


@dataclass(slots=True)
class _Charge:
    """Money that was taken, and what of it came back."""

    amount_micros: int
    reference_id: str
    refunded_micros: int = 0


@dataclass(frozen=True, slots=True)
class _Entry:
    """What a reason announces and the wallet has to book, in the same commit, word for word."""

    kind: type[Wallet.Moved]
    organization_id: UUID
    amount_micros: int
    reason: str
    currency: str | None = None  # None: whatever the wallet holds.


# What an entry is called, what announces it, and what did not happen if it is missing.
WORDS: Mapping[type[Wallet.Moved], tuple[str, str, str]] = {
    Wallet.Charged: ("charge", "reason", "taken"),
    Wallet.Refunded: ("refund", "failure", "given"),
    Wallet.Deposited: ("deposit", "payment", "booked"),
}


class Invariants:
    """Feed it every event in order; it answers with what is wrong."""

    def __init__(self) -> None:
        self._versions: dict[UUID, int] = {}
        self._ledgers: dict[UUID, _Ledger] = {}
        self._jobs: dict[UUID, _Job] = {}
        self._charges: dict[UUID, _Charge] = {}
        self._announced: dict[UUID, tuple[int, _Entry]] = {}  # By transaction, with its position.

    def check(self, recorded: Recorded) -> list[str]:
        """Check one event against all that came before."""
        return list(self._check(recorded.position, recorded.event))

    def check_end(self) -> list[tuple[int, str]]:
        """Return what was announced and never booked, each with its position."""
        return [
            (
                position,
                f"{WORDS[entry.kind][0]} {each} was announced and not {WORDS[entry.kind][2]}",
            )
            for each, (position, entry) in self._announced.items()
        ]

    def _check(self, position: int, event: Event) -> Iterator[str]:
        expected = self._versions.get(event.originator_id, 0) + 1
        if event.originator_version != expected:
            yield f"stream {event.originator_id} jumps to version {event.originator_version}"
        self._versions[event.originator_id] = event.originator_version
        match event:
            case Wallet.Opened():
                ledger = _Ledger(event.organization_id, event.currency)
                self._ledgers[event.originator_id] = ledger
            case Wallet.Moved():
                yield from self._check_entry(event)
            case BulkJob.Created():
                self._jobs[event.originator_id] = _Job(event)
                yield from _check_price(event)
            case BulkJob.ItemsCompleted() | BulkJob.ItemsFailed() | BulkJob.Finished():
                yield from self._check_job(event)
        for transaction_id, entry in _announcements(event):
            self._announced[transaction_id] = (position, entry)

    def _check_entry(self, event: Wallet.Moved) -> Iterator[str]:
        ledger = self._ledgers.get(event.originator_id)
        if ledger is None:
            yield f"wallet {event.originator_id} moves before it was opened"
            return
        signed = -event.amount_micros if isinstance(event, Wallet.Charged) else event.amount_micros
        ledger.balance_micros += signed
        ledger.sequence += 1
        if event.sequence != ledger.sequence:
            yield f"wallet {event.originator_id} jumps to sequence {event.sequence}"
        if event.balance_micros != ledger.balance_micros:
            yield f"wallet {event.originator_id} states another balance than its entries give"
        if ledger.balance_micros < 0:
            yield f"wallet {event.originator_id} is below zero"
        if (event.organization_id, event.currency) != (ledger.organization_id, ledger.currency):
            yield f"wallet {event.originator_id} changes its organization or currency"
        if not isinstance(event, Wallet.Adjusted) and event.amount_micros <= 0:
            yield f"transaction {event.transaction_id} has no positive amount"
        yield from self._check_reason(event)

    def _check_reason(self, event: Wallet.Moved) -> Iterator[str]:
        if isinstance(event, Wallet.Adjusted):
            return
        _, announced = self._announced.pop(event.transaction_id, (0, None))
        if announced is None or not _is_booked(announced, event):
            noun, announcer, _ = WORDS[type(event)]
            yield f"{noun} {event.transaction_id} has no {announcer} that names it"
        if isinstance(event, Wallet.Charged):
            charge = _Charge(event.amount_micros, event.reference.id)
            self._charges[event.transaction_id] = charge
        elif isinstance(event, Wallet.Refunded):
            yield from self._check_refund(event)

    def _check_refund(self, event: Wallet.Refunded) -> Iterator[str]:
        charge = self._charges.get(event.charge_id)
        if charge is None or charge.reference_id != event.reference.id:
            yield f"refund {event.transaction_id} names no charge of its reason"
            return
        charge.refunded_micros += event.amount_micros
        if charge.refunded_micros > charge.amount_micros:
            yield f"refunds of charge {event.charge_id} exceed it"

    def _check_job(
        self, event: BulkJob.ItemsCompleted | BulkJob.ItemsFailed | BulkJob.Finished
    ) -> Iterator[str]:
        job = self._jobs.get(event.originator_id)
        if job is None:
            yield f"job {event.originator_id} moves before it was created"
            return
        total = job.created.total_count
        if isinstance(event, BulkJob.Finished):
            if job.finished or len(job.ended) != total:
                yield f"job {event.originator_id} finishes with open items, or twice"
            job.finished = True
            return
        if job.ended.intersection(event.indexes) or len(set(event.indexes)) != len(event.indexes):
            yield f"job {event.originator_id} ends an item twice"
        if not all(0 <= index < total for index in event.indexes):
            yield f"job {event.originator_id} ends an item that it does not have"
        job.ended.update(event.indexes)
        if isinstance(event, BulkJob.ItemsCompleted):
            job.completed += len(event.indexes)
        else:
            job.failed += len(event.indexes)
            job.refunded_micros += event.refund.amount_micros if event.refund else 0
        yield from _check_money(event.originator_id, job)


def _announcements(event: Event) -> Iterator[tuple[UUID, _Entry]]:
    """Return the transactions that an event says are made together with it."""
    match event:
        case Deposit.Made():
            paid = (event.organization_id, event.amount_micros, event.reference)
            entry = _Entry(Wallet.Deposited, *paid)
            yield event.transaction_id, entry
        case (
            NumberLookup.Answered(price=Price() as price) | BulkJob.Created(price=Price() as price)
        ):
            reason = str(event.originator_id)
            cost = (event.organization_id, price.amount_micros, reason, price.currency)
            entry = _Entry(Wallet.Charged, *cost)
            yield price.transaction_id, entry
        case BulkJob.ItemsFailed(refund=ItemRefund() as refund):
            reason = str(event.originator_id)
            entry = _Entry(Wallet.Refunded, event.organization_id, refund.amount_micros, reason)
            yield refund.transaction_id, entry


def _is_booked(announced: _Entry, event: Wallet.Moved) -> bool:
    booked = _Entry(
        type(event),
        event.organization_id,
        event.amount_micros,
        event.reference.id,
        announced.currency and event.currency,
    )
    return booked == announced


def _check_price(event: BulkJob.Created) -> Iterator[str]:
    price_micros = event.price.amount_micros if event.price is not None else 0
    if price_micros != event.total_count * event.item_price_micros:
        yield f"job {event.originator_id} costs another sum than its items"


def _check_money(job_id: UUID, job: _Job) -> Iterator[str]:
    """Check that charge − refunds = (completed + pending) × price."""
    charged = job.created.price.amount_micros if job.created.price is not None else 0
    kept = (job.created.total_count - job.failed) * job.created.item_price_micros
    if charged - job.refunded_micros != kept:
        yield f"job {job_id} keeps another sum than its items are worth"
