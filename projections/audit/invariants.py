"""The invariants of the design, each checked at every position of the log.

They are computed from the events alone and share no code with the aggregates that they check. The
invariant that no stream has a gap stands here; the others have files of their own.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from uuid import UUID

from domain.accounts.ledger import Ledger
from domain.accounts.monthly_fee import MonthlyFee
from domain.accounts.paid_price import PaidPrice
from domain.accounts.wallet import Adjustment, Deposit, Reference, Wallet
from domain.links.esim import Esim
from domain.links.link import Link
from domain.links.plan_change import PlanChange
from domain.log.aggregate import Event
from domain.log.log import Recorded
from domain.lookups.bulk_job import BulkJob
from domain.lookups.number_lookup import NumberLookup
from projections.audit.bookings import Bookings, Reason
from projections.audit.bulk_jobs import BulkJobInvariants
from projections.audit.esims import EsimInvariants
from projections.audit.links import LinkInvariants
from projections.audit.monthly_fees import MonthlyFeeInvariants
from projections.audit.plan_changes import PlanChangeInvariants
from projections.audit.promises import Promises
from projections.audit.wallets import WalletInvariants


@dataclass
class Streams:
    """The newest version of every stream."""

    _versions: dict[UUID, int] = field(default_factory=dict)

    def check(self, event: Event) -> Iterator[str]:
        expected = self._versions.get(event.originator_id, 0) + 1
        if event.originator_version != expected:
            yield f"stream {event.originator_id} jumps to version {event.originator_version}"
        self._versions[event.originator_id] = event.originator_version


class Invariants:
    """Give it every event in order; it returns what is wrong."""

    def __init__(self) -> None:
        self._streams = Streams()
        self._promises = Promises()
        self._bookings = Bookings(self._promises)
        self._wallets = WalletInvariants(self._bookings)
        self._jobs = BulkJobInvariants(self._bookings)
        self._links = LinkInvariants(self._bookings, self._promises)
        self._esims = EsimInvariants(self._promises)
        self._plan_changes = PlanChangeInvariants(self._bookings, self._promises)
        self._monthly_fees = MonthlyFeeInvariants(self._bookings)

    def check(self, recorded: Recorded) -> list[str]:
        """Check one event against all events before it."""
        event = recorded.event
        return [*self._streams.check(event), *self._check_facts(recorded.position, event)]

    def check_end(self) -> list[tuple[int, str]]:
        """Return what was announced and never came, each with the position of the announcement."""
        return self._promises.broken()

    def _check_facts(self, position: int, event: Event) -> Iterator[str]:
        match event:
            case Wallet.Event():
                yield from self._wallets.check(event)
            case Ledger.Opened():
                yield from self._wallets.check_currency(event)
            case Deposit.Made() | Adjustment.Made():
                self._bookings.announce_booking(position, event)
            case NumberLookup.Answered(price=PaidPrice() as price):
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
