"""The queues, what fills them and what works on them."""

from datetime import timedelta
from functools import cached_property
from uuid import uuid4

from app.adapters.queues.in_process import InProcessBroker
from app.adapters.queues.rabbitmq import DurableBroker
from app.adapters.stores.slices_in_hand import SqlSlicesInHand
from app.bootstrap.commands import Links
from app.settings import LOOKUP_THREADS, PROVISION_THREADS, Settings
from domain.accounts.billing import MonthlyBilling
from domain.cause import Clock, utc_now
from workers import actors
from workers.bulk import BulkLookup
from workers.dispatcher import Dispatcher
from workers.fees import FeeReads, FeeRound, MonthlyFees
from workers.links import EsimReservation, Provisioning
from workers.lookup_turns import LookupTurns
from workers.plan_changes import PlanChanges, Steadiness
from workers.publisher import DramatiqPublisher
from workers.shares import Shares
from workers.sweep import ProvisioningSweep, Sweep

BOOT_JOBS_MAX = 10_000  # What a dispatcher's first start asks for at once; the sweep asks for more.


class Work(Links):
    """What happens after the answer."""

    def __init__(self, settings: Settings, clock: Clock = utc_now) -> None:
        super().__init__(settings, clock)
        self.steadiness = Steadiness(self.clock)  # Now: it believes only what it has seen.

    @cached_property
    def broker(self) -> InProcessBroker | DurableBroker:
        """The queues, with every actor declared; nothing is connected before it is used."""
        settings = self.settings
        broker: InProcessBroker | DurableBroker = InProcessBroker()
        if not settings.has_own_broker:
            broker = DurableBroker(settings.broker_url.split(","), quorum=settings.quorum_queues)
        actors.register(
            broker,
            actors.Services(
                lambda: self.lookup_turns,
                lambda: self.provisioning,
                lambda: self.plan_changes,
                lambda: self.monthly_fees,
            ),
        )
        return broker

    @cached_property
    def publisher(self) -> DramatiqPublisher:
        """What puts messages into queues."""
        return DramatiqPublisher(self.broker, self.broker.backlog)

    @cached_property
    def fee_round(self) -> FeeRound:
        """What asks for the monthly fees."""
        return FeeRound(self.publisher)

    @cached_property
    def sweep(self) -> Sweep:
        """What asks again for idle work."""
        return Sweep(self.log, self.views, self.jobs, self.publisher, self.clock)

    @cached_property
    def bulk_lookup(self) -> BulkLookup:
        """The work of bulk jobs."""
        return BulkLookup(self.log, self.committer, self.vault, self.answers, self.clock)

    @cached_property
    def lookup_turns(self) -> LookupTurns:
        """Whose slice comes next."""
        return LookupTurns(
            self.log,
            self.views,
            self.open_slices,
            self.slices_in_hand,
            self.bulk_lookup,
            self.publisher,
            self.clock,
            LOOKUP_THREADS,
        )

    @cached_property
    def slices_in_hand(self) -> SqlSlicesInHand:
        """What workers have in hand."""
        return SqlSlicesInHand(self.stores)

    @cached_property
    def provisioning(self) -> Provisioning:
        """The work of links."""
        return Provisioning(
            log=self.log,
            network=self.network,
            readings=self.readings,
            vault=self.vault,
            reservation=self._reservation,
            failing=self.failing,
            rules=self.rules,
            clock=self.clock,
            new_id=uuid4,
            shares=self._provision_shares,
        )

    @cached_property
    def _provision_shares(self) -> Shares:
        """Whose threads of the provisioning queue these are."""
        return Shares(PROVISION_THREADS)

    @property
    def _reservation(self) -> EsimReservation:
        return EsimReservation(self.log, self.committer, self.network, self.rules, self.clock)

    @cached_property
    def plan_changes(self) -> PlanChanges:
        """The work of plan changes."""
        return PlanChanges(
            self.log,
            self.network,
            self.failing,
            self.clock,
            self.steadiness,
            self._provision_shares,
        )

    @cached_property
    def provisioning_sweep(self) -> ProvisioningSweep:
        """What asks again for links and plan changes that are due."""
        return ProvisioningSweep(self.views, self.unfinished, self.publisher, self.clock)

    @cached_property
    def monthly_fees(self) -> MonthlyFees:
        """What charges for active links, month by month."""
        billing = MonthlyBilling(self.log, self.committer, self.currency)
        reads = FeeReads(
            database=self.views,
            organizations=self.organizations,
            links=self.link_spans,
            book=self.fee_book,
            reach=self._reach_fees,
        )
        return MonthlyFees(self.log, billing, reads, self.shared_clock)

    def _reach_fees(self, position: int) -> bool:
        """Project up to a position; False when a read model of the fees has stopped before it."""
        self.projector.catch_up(position)
        places = self.positions.all(self.views)
        needed = (self.organizations.name, self.link_spans.name, self.fee_book.name)
        return all(name in places and places[name].position >= position for name in needed)

    @cached_property
    def dispatcher(self) -> Dispatcher:
        """What turns events into messages."""
        return Dispatcher(
            self.log, self.views, self.positions, self.publisher, self.sweep_everything, self.clock
        )

    def sweep_everything(self) -> None:
        """Ask for all unfinished work: after a start nobody knows what was ever sent."""
        self.projector.catch_up()
        self.sweep.run(idle=timedelta(0), jobs_max=BOOT_JOBS_MAX)
        self.provisioning_sweep.run(everything=True, work_max=BOOT_JOBS_MAX)
