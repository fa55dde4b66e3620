"""A correct history, and ways to append what must never happen."""

from dataclasses import replace
from typing import Any, TypeVar
from uuid import UUID, uuid4

from domain.accounts.currency import Ledger
from domain.accounts.organization import Organization
from domain.accounts.paid_price import PaidPrice, RefundReason, Repayment
from domain.accounts.wallet import (
    Adjustment,
    Booking,
    Deposit,
    Reference,
    Refund,
    Wallet,
)
from domain.cause import Cause, utc_now
from domain.ids import derive_id
from domain.log.aggregate import Event, LoadedFromNewest, Root
from domain.log.log import Stored, decoded, replay
from domain.log.mapper import MsgspecMapper
from domain.lookups.bulk_job import BulkJob
from domain.lookups.single import NumberLookup
from domain.money import format_amount
from domain.personal import Sealed
from projections.audit.auditor import check_log
from projections.audit.report import Failure
from tests.domain.build import charge, lookup
from tests.installation import Process
from tests.projections.histories import forge

SEALED = Sealed("2026-03", b"box")
ITEM_MICROS = 10_000
E = TypeVar("E", bound=Event)
R = TypeVar("R", bound=Root)


class Paper:
    """A log in memory: rows that anybody may write, past every decision and check."""

    def __init__(self) -> None:
        self.rows: list[Stored] = []

    def write(self, *events: Event) -> int:
        """Append events as they are; return the position of the last one."""
        for at, each in enumerate(map(MsgspecMapper().to_stored_event, events), self.head() + 1):
            place = at, each.originator_id, each.originator_version
            self.rows.append(Stored(*place, each.topic, each.state))
        return self.head()

    def get(self, kind: type[R], stream_id: UUID) -> R:
        """Load an aggregate, which must exist."""
        its = [decoded(row).event for row in self.rows if row.stream_id == stream_id]
        found = kind.after(its[-1]) if issubclass(kind, LoadedFromNewest) else replay(its)
        assert isinstance(found, kind)
        return found

    def head(self) -> int:
        return self.rows[-1].position if self.rows else 0

    given = head

    def stored(self, after: int, limit: int) -> list[Stored]:
        return [row for row in self.rows if row.position > after][:limit]


class InDatabase(Paper):
    """The log of a process, written as a foreign program would."""

    def __init__(self, process: Process) -> None:
        self.process = process

    @property
    def rows(self) -> list[Stored]:
        return self.process.log.stored(0, 10**5)

    def write(self, *events: Event) -> int:
        return forge(self.process, *events)[-1]


class Forger:
    """Makes events by the rules of the aggregates, so that a test breaks exactly one of them."""

    def __init__(self, log: Paper | None = None) -> None:
        self.log = log or Paper()
        self.write = self.log.write
        self.cause = Cause(utc_now(), "request-1")
        opened = Ledger.begin(Ledger.Opened, self.cause, Ledger.id_of(), currency="USD")
        self.write(*self._all(opened))
        self.wallet = self.account()
        self.organization_id = self.wallet.organization_id

    def account(self) -> Wallet:
        """Register an organization with 1.00, and return its wallet."""
        its = Organization.register(uuid4(), self.cause, name="Acme")
        wallet = Wallet.open(its.id, "USD", self.cause)
        made = Deposit.make(its.id, "bank-1", 1_000_000, self.cause)
        wallet.enter(made, "USD", self.cause)
        self.write(*self._all(its, made, wallet))
        return wallet

    def failures(self) -> list[Failure]:
        return check_log(self.log).failures

    @staticmethod
    def _all(*aggregates: Root) -> list[Event]:
        return [event for each in aggregates for event in each.collect_events()]

    def lookup(self, micros: int = ITEM_MICROS) -> NumberLookup.Answered:
        """A lookup that announces its charge."""
        stream_id = uuid4()
        price = PaidPrice(micros, "USD", derive_id("transaction", stream_id))
        made = lookup(stream_id, self.cause, organization_id=self.organization_id, price=price)
        return self._only(made, NumberLookup.Answered)

    def charge_for(self, lookup: NumberLookup.Answered, **changes: Any) -> Wallet.Charged:
        """The charge that a lookup has announced."""
        return self.charged(lookup.price, "lookup", lookup.originator_id, **changes)

    def charged(self, price: PaidPrice, kind: str, reason: UUID, **changes: Any) -> Wallet.Charged:
        facts: dict[str, Any] = {"transaction_id": price.transaction_id, "currency": price.currency}
        facts["kind"] = "lookup" if kind == "lookup" else "bulk_lookup"
        paid = format_amount(price.amount_micros)
        made = charge(paid, reference=Reference(kind, str(reason)), **facts)
        self.wallet.book([made], self.cause)
        return forged(self._only(self.wallet, Wallet.Charged), **changes)

    def job(self, count: int = 4, item_micros: int = ITEM_MICROS) -> BulkJob:
        """A job that was paid for, with its two events in the log."""
        job_id, price = uuid4(), None
        if item_micros:
            price = PaidPrice(count * item_micros, "USD", derive_id("transaction", job_id))
        job = BulkJob.create(
            job_id,
            self.cause,
            organization_id=self.organization_id,
            total_count=count,
            slice_size=2,
            item_price_micros=item_micros,
            price=price,
            personal=SEALED,
        )
        self.write(self._only(job, BulkJob.Created))
        if price is not None:
            self.write(self.charged(price, "job", job.id))
        return job

    def failed(self, job: BulkJob, *indexes: int, **changes: Any) -> BulkJob.ItemsFailed:
        job.fail_items(0, indexes, ["down"] * len(indexes), self.cause)
        return forged(self._only(job, BulkJob.ItemsFailed), **changes)

    def refund_for(
        self, job: BulkJob, lost: BulkJob.ItemsFailed | BulkJob.Cancelled, **changes: Any
    ) -> Event:
        """The refund that a failure or a cancellation has announced."""
        (reason,) = lost.reasons().values()
        return forged(self.refunded(job, lost.refund, reason), **changes)

    def refunded(
        self, job: BulkJob, refund: Repayment, reason: RefundReason = "lookup_unavailable"
    ) -> Wallet.Refunded:
        back = Refund(
            transaction_id=refund.transaction_id,
            charge_id=job.created.price.transaction_id,
            amount_micros=refund.amount_micros,
            currency=job.created.price.currency,
            reference=Reference("job", str(job.id)),
            description="Refund",
            reason=reason,
        )
        self.wallet.book([back], self.cause)
        return self._only(self.wallet, Wallet.Refunded)

    def completed(self, job: BulkJob, *indexes: int, **changes: Any) -> BulkJob.ItemsCompleted:
        job.complete_items(0, indexes, SEALED, self.cause)
        return forged(self._only(job, BulkJob.ItemsCompleted), **changes)

    def deposit(self, reference: str = "bank-2") -> tuple[Deposit.Made, Wallet.Deposited]:
        made = Deposit.make(self.organization_id, reference, 500_000, self.cause)
        self.wallet.enter(made, "USD", self.cause)
        return self._only(made, Deposit.Made), self._only(self.wallet, Wallet.Deposited)

    def paid_in(self, reference: str, micros: int) -> tuple[Event, list[Event]]:
        """A deposit and its entries: perhaps it settles a claim."""
        made = Deposit.make(self.organization_id, reference, micros, self.cause)
        self.wallet.enter(made, "USD", self.cause)
        return self._only(made, Deposit.Made), [*self.wallet.collect_events()]

    def play_money(self, reference: str) -> tuple[Deposit.Played, Wallet.Deposited]:
        owner, event = self.organization_id, Deposit.Played
        made = Deposit.make(owner, reference, 500_000, self.cause, event=event)
        self.wallet.enter(made, "USD", self.cause)
        return self._only(made, Deposit.Played), self._only(self.wallet, Wallet.Deposited)

    def cancelled(self, job: BulkJob, **changes: Any) -> BulkJob.Cancelled:
        job.cancel(self.cause)
        return forged(self._only(job, BulkJob.Cancelled), **changes)

    def finished(self, job: BulkJob) -> BulkJob.Finished:
        """An end of a job, whether it is settled or not."""
        job.record(BulkJob.Finished, self.cause, organization_id=self.organization_id)
        return self._only(job, BulkJob.Finished)

    def adjustment(self, micros: int, **changes: Any) -> tuple[Adjustment.Made, Wallet.Adjusted]:
        """A correction and its entry, in which something may differ."""
        owner, reference = self.organization_id, str(uuid4())
        made = Adjustment.make(owner, reference, micros, self.cause, reason="a correction")
        self.wallet.enter(made, "USD", self.cause)
        entry = forged(self._only(self.wallet, Wallet.Adjusted), **changes)
        return self._only(made, Adjustment.Made), entry

    def outgoing(self, kind: type[Booking], micros: int, **facts: Any) -> tuple[Event, list[Event]]:
        """A reversal or payout, and its entries: before a reversal perhaps one of what is owed."""
        given = {"reason": "why", "value_date": self.cause.at.date(), **facts}
        reference = given.pop("reference", None) or str(uuid4())
        made = kind.make(self.organization_id, reference, micros, self.cause, **given)
        self.wallet.enter(made, "USD", self.cause)
        (event,) = made.collect_events()
        return event, [*self.wallet.collect_events()]

    def adjusted(self, micros: int, **changes: Any) -> Wallet.Adjusted:
        """A correction as earlier releases wrote it: it names nothing but itself."""
        # They opened no ledger either.
        self.log.rows = [row for row in self.log.rows if row.topic != Ledger.Opened.TOPIC]
        _, entry = self.adjustment(micros, **changes)
        return forged(entry, reference=Reference("adjustment", str(entry.transaction_id)))

    def _only(self, aggregate: Root, kind: type[E]) -> E:
        (event,) = aggregate.collect_events()
        assert type(event) is kind
        return event


def forged(event: E, **changes: Any) -> E:
    return replace(event, **changes)
