"""The invariants of the design, each checked at every position of the log.

They are computed from the events alone and share no code with the aggregates that they check.

That every stream is without a gap from its first event on.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from uuid import UUID

from domain.accounts.ledger import Ledger
from domain.accounts.monthly_fee import MonthlyFee
from domain.accounts.price import Price
from domain.accounts.wallet import Adjustment, Deposit, Reference, Wallet
from domain.links.esim import Esim
from domain.links.link import Link
from domain.links.plan_change import PlanChange
from domain.log.aggregate import Event
from domain.log.log import Recorded
from domain.lookups.bulk_job import BulkJob
from domain.lookups.number_lookup import NumberLookup
from projections.audit.bookings import Bookings, Reason
from projections.audit.bulk_jobs import BulkJobs
from projections.audit.esims import Esims
from projections.audit.links import Links
from projections.audit.monthly_fees import MonthlyFees
from projections.audit.plan_changes import PlanChanges
from projections.audit.promises import Promises
from projections.audit.wallets import Wallets


@dataclass
class Streams:
    """The version that every stream has come to."""

    _versions: dict[UUID, int] = field(default_factory=dict)

    def check(self, event: Event) -> Iterator[str]:
        expected = self._versions.get(event.originator_id, 0) + 1
        if event.originator_version != expected:
            yield f"stream {event.originator_id} jumps to version {event.originator_version}"
        self._versions[event.originator_id] = event.originator_version


class Invariants:
    """Feed it every event in order; it answers with what is wrong."""

    def __init__(self) -> None:
        self._streams = Streams()
        self._promises = Promises()
        self._bookings = Bookings(self._promises)
        self._wallets = Wallets(self._bookings)
        self._jobs = BulkJobs(self._bookings)
        self._links = Links(self._bookings, self._promises)
        self._esims = Esims(self._promises)
        self._plan_changes = PlanChanges(self._bookings, self._promises)
        self._monthly_fees = MonthlyFees(self._bookings)

    def check(self, recorded: Recorded) -> list[str]:
        """Check one event against all that came before."""
        event = recorded.event
        return [*self._streams.check(event), *self._check_facts(recorded.position, event)]

    def check_end(self) -> list[tuple[int, str]]:
        """Return what was announced and never came, each with its position."""
        return self._promises.broken()

    def _check_facts(self, position: int, event: Event) -> Iterator[str]:
        match event:
            case Wallet.Event():
                yield from self._wallets.check(event)
            case Ledger.Opened():
                yield from self._wallets.check_currency(event)
            case Deposit.Made() | Adjustment.Made():
                self._bookings.announce_booking(position, event)
            case NumberLookup.Answered(price=Price() as price):
                reference = Reference("lookup", str(event.originator_id))
                reason = Reason(position, event.organization_id, reference, "lookup")
                self._bookings.announce_charge(reason, price)
            case BulkJob.Event():
                yield from self._jobs.check(position, event)
            case Link.Event():
                yield from self._links.check(position, event)
            case Esim.Registered() | Esim.Reserved() | Esim.Quarantined() | Esim.Released():
                yield from self._esims.check(event)
            case PlanChange.Event():
                yield from self._plan_changes.check(position, event)
            case MonthlyFee.Due() | MonthlyFee.Charged():
                yield from self._monthly_fees.check(position, event)
