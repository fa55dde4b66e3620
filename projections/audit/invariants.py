"""The invariants of the design, each checked at every position of the log.

They are computed from the events alone and share no code with the aggregates that they check. This
module checks that no stream has a gap; other invariants have their own modules.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from uuid import UUID

from domain.accounts.currency import Ledger
from domain.accounts.monthly_fee import MonthlyFee
from domain.accounts.paid_price import PaidPrice, Repaying
from domain.accounts.prices import LookupPrice
from domain.accounts.refund_by_hand import RefundByHand
from domain.accounts.wallet import Adjustment, OfAdjustment, OfDeposit, Reference, Wallet
from domain.finance.month import Month
from domain.links.esim import Esim
from domain.links.link import Link
from domain.links.lost_order import LostOrder
from domain.links.plan_change import PlanChange
from domain.log.aggregate import Event
from domain.log.log import Recorded
from domain.lookups.bulk_job import BulkJob
from domain.lookups.number_lookup import NumberLookup
from domain.webhooks.endpoint import WebhookEndpoint, WebhookList
from projections.audit.bookings import Bookings, Reason
from projections.audit.bulk_jobs import BulkJobInvariants
from projections.audit.esims import EsimInvariants
from projections.audit.ids import DerivedIds, check_ids
from projections.audit.link_ends import EndInvariants
from projections.audit.links import LinkInvariants
from projections.audit.lost_orders import LostOrderInvariants
from projections.audit.monthly_fees import MonthlyFeeInvariants
from projections.audit.plan_changes import PlanChangeInvariants
from projections.audit.promises import Promises
from projections.audit.refunds_by_hand import History, RefundByHandInvariants
from projections.audit.wallets import WalletInvariants
from projections.audit.webhooks import WebhookInvariants


@dataclass
class Streams:
    """The newest version of every stream; with `began_earlier` a stream may begin at any version.

    Most streams are lookups, which are not remembered. Only a refund by hand can follow a lookup,
    and the check of that refund reads the whole stream.
    """

    began_earlier: bool = False
    # Keyed by int, which takes less memory than a UUID.
    _versions: dict[int, int] = field(default_factory=dict)

    def check(self, event: Event) -> Iterator[str]:
        if isinstance(event, NumberLookup.RefundedByHand):
            return
        stream, version = event.originator_id.int, event.originator_version
        expected = self._versions.get(stream, 0) + 1
        if version != expected and (stream in self._versions or not self.began_earlier):
            yield f"stream {event.originator_id} jumps to version {version}"
        if not isinstance(event, NumberLookup.Answered):
            self._versions[stream] = version


class Continuity:
    """The checks that need no earlier events: streams and wallets have no gaps.

    The first event that it gets of a stream is believed; the next ones must continue it.
    """

    def __init__(self) -> None:
        self._streams = Streams(began_earlier=True)
        self._wallets = dict[UUID, tuple[int, int]]()  # Sequence and balance.

    def check(self, recorded: Recorded) -> list[str]:
        """Check one event against those that it got before."""
        event = recorded.event
        moved = self._check_entry(event) if isinstance(event, Wallet.Moved) else ()
        return [*self._streams.check(event), *check_ids(event), *moved]

    def _check_entry(self, event: Wallet.Moved) -> Iterator[str]:
        before = self._wallets.get(event.originator_id)
        signed = -event.amount_micros if isinstance(event, Wallet.Charged) else event.amount_micros
        now = self._wallets[event.originator_id] = (event.sequence, event.balance_micros)
        if before is not None and now != (before[0] + 1, before[1] + signed):
            yield f"wallet {event.originator_id} does not go on from the entry before"

    def check_end(self) -> list[tuple[int, str]]:
        """Return nothing: without all events it is not known what was announced."""
        return []


class Invariants:
    """Give it every event in order; it returns what is wrong.

    `history` reads all events of one stream, for the rare refunds by hand and cancelled links.
    """

    def __init__(self, history: History) -> None:
        self._streams = Streams()
        self._ids = DerivedIds()
        self._promises = Promises()
        self._bookings = Bookings(self._promises)
        self._wallets = WalletInvariants(self._bookings)
        self._jobs = BulkJobInvariants(self._bookings)
        self._ends = EndInvariants(self._bookings, self._promises, history)
        self._links = LinkInvariants(self._bookings, self._promises, self._ends)
        self._esims = EsimInvariants(self._promises)
        self._lost_orders = LostOrderInvariants(self._promises)
        self._plan_changes = PlanChangeInvariants(self._bookings, self._promises)
        self._monthly_fees = MonthlyFeeInvariants(self._bookings)
        self._by_hand = RefundByHandInvariants(self._bookings, history)
        self._webhooks = WebhookInvariants(self._promises)

    def check(self, recorded: Recorded) -> list[str]:
        """Check one event against all events before it."""
        event = recorded.event
        if isinstance(event, Repaying):
            self._bookings.announce_reasons(event)
        facts = self._check_facts(recorded.position, event)
        if isinstance(event, RefundByHand):
            facts = self._by_hand.check(recorded.position, event)
        order = [*self._streams.check(event), *self._ids.check(event)]
        return [*order, *facts]

    def check_end(self) -> list[tuple[int, str]]:
        """Return each announcement that was not kept, with its position."""
        return self._promises.broken()

    def _check_facts(self, position: int, event: Event) -> Iterator[str]:
        match event:
            case Wallet.Event():
                yield from self._wallets.check(event)
            case Ledger.Opened() | LookupPrice.Set():
                yield from self._wallets.check_currency(event)
            case Adjustment.Proposed():
                pass  # It moves nothing.
            case OfDeposit() | OfAdjustment():
                self._bookings.announce_booking(position, event)
            case NumberLookup.Answered(price=PaidPrice() as price):
                reference = Reference("lookup", str(event.originator_id))
                reason = Reason(position, event.organization_id, reference, "lookup")
                self._bookings.announce_charge(reason, price)
            case BulkJob.Event():
                yield from self._jobs.check(position, event)
            case Link.Event():
                yield from self._links.check(position, event)
            case _:
                yield from self._check_more(position, event)

    def _check_more(self, position: int, event: Event) -> Iterator[str]:
        match event:
            case Month.Closed():
                self._bookings.is_recent = True
            case Esim.Registered() | Esim.Reserved() | Esim.Quarantined() | Esim.Released():
                yield from self._esims.check(event)
            case LostOrder.Event():
                yield from self._lost_orders.check(position, event)
            case PlanChange.Returned():
                yield from self._ends.check_change(event)
            case PlanChange.Event():
                yield from self._plan_changes.check(position, event)
            case WebhookEndpoint.Event() | WebhookList.Event():
                yield from self._webhooks.check(position, event)
            case MonthlyFee.Due() | MonthlyFee.Charged():
                yield from self._monthly_fees.check(position, event)
