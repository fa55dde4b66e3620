"""What the log says of links and their money, kept up event by event and compared with the world.

It is kept from the events alone, so that it shares nothing with the aggregates that it checks.
"""

from collections import Counter
from uuid import UUID

import msgspec

from app.providers.simulated_network.subscription import Subscription
from domain import link_events as events
from domain.aggregate import Event
from domain.plan_change import PlanChange
from domain.wallet import Wallet
from projections.invariants import Invariants
from tests.workers.link_lab import Lab

EVENTS_MAX = 10_000
THERE = "SELECT document FROM simulated_endpoints WHERE NOT is_removed"


class Books:
    """One organization's money and links, at the newest position that was read."""

    def __init__(self, lab: Lab) -> None:
        self._lab = lab
        self._position = 0
        self._invariants = Invariants()
        self.paid_in_micros = 0
        self.balance_micros = 0
        self.charged: Counter[str] = Counter()
        self.refunded: Counter[str] = Counter()
        self.failed: set[UUID] = set()
        self.holders: dict[str, UUID] = {}
        self._unended: dict[UUID, None] = {}  # In the order in which they came.
        self._open_changes: dict[UUID, UUID] = {}  # Each with its link.

    @property
    def unended(self) -> list[UUID]:
        """Links that are active, under way, or still to be cleaned up."""
        self.read_on()
        return [*self._unended]

    @property
    def open_changes(self) -> list[UUID]:
        """Changes that have not finished."""
        self.read_on()
        return [*self._open_changes]

    def read_on(self) -> None:
        """Follow the log to its end; every invariant holds at each event."""
        for recorded in self._lab.process.log.read(self._position, EVENTS_MAX):
            assert self._invariants.check(recorded) == []
            self._position = recorded.position
            self._note_money(recorded.event)
            self._note_links(recorded.event)
        assert self._invariants.check_end() == []

    def _note_money(self, event: Event) -> None:
        match event:
            case Wallet.Deposited():
                self.paid_in_micros += event.amount_micros
            case Wallet.Charged():
                self.charged[event.reference.id] += event.amount_micros
            case Wallet.Refunded():
                self.refunded[event.reference.id] += event.amount_micros
        if isinstance(event, Wallet.Moved):
            self.balance_micros = event.balance_micros

    def _note_links(self, event: Event) -> None:
        stream_id = event.originator_id
        match event:
            case events.Requested():
                self._unended[stream_id] = None
            case events.ProvisioningFailed():
                self.failed.add(stream_id)
                if event.iccid is None:
                    del self._unended[stream_id]
            case events.EsimReserved():
                assert event.iccid not in self.holders
                self.holders[event.iccid] = stream_id
            case events.EsimReleased():
                assert self.holders.pop(event.iccid) == stream_id
                del self._unended[stream_id]
            case PlanChange.Requested():
                assert event.link_id not in self._open_changes.values()
                self._open_changes[stream_id] = event.link_id
            case PlanChange.Finished():
                del self._open_changes[stream_id]

    def check_money(self) -> None:
        """Nothing is lost and nothing is made; who failed has all of it back and nobody else."""
        taken, back = self.charged.total(), self.refunded.total()
        assert self.balance_micros == self.paid_in_micros - taken + back
        assert self.balance_micros >= 0
        for link_id in self.failed:
            assert self.refunded[str(link_id)] == self.charged[str(link_id)]
        for reason, refunded in self.refunded.items():
            assert refunded <= self.charged[reason]

    def check_holders(self) -> None:
        """An eSIM has one endpoint at most, and only the link that holds it can have that one.

        So no eSIM is given away while something can still come alive on it.
        """
        there = self._endpoints()
        references = Counter(endpoint.reference for endpoint in there)
        assert all(count == 1 for count in references.values()), references
        assert len({endpoint.iccid for endpoint in there}) == len(there)
        for endpoint in there:
            assert str(self.holders.get(endpoint.iccid)) == endpoint.reference

    def _endpoints(self) -> list[Subscription]:
        """Return every endpoint that the network has, and those that it will have."""
        with self._lab.process.stores.reading() as connection:
            found = connection.exec_driver_sql(THERE).scalars().all()
        return [msgspec.json.decode(each, type=Subscription) for each in found]
