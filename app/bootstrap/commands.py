"""What can be asked of the domain, with the provider behind it.

The network, and what partners can ask of it.
"""

import time
from datetime import timedelta
from functools import cached_property
from threading import Event
from uuid import UUID, uuid4

from app.adapters.circuit import CircuitBreaker
from app.adapters.lookups.mcc_mnc import load_networks
from app.adapters.lookups.offline import OfflineLookup
from app.adapters.lookups.sandbox import SandboxLookup, is_sandbox_number
from app.adapters.networks.simulated.network import SimulatedNetwork
from app.bootstrap.known_plans import KnownPlans
from app.bootstrap.storage import Reading
from app.settings import WAITING_MAX, WrongSetting
from domain.accounts.commands import Accounts
from domain.accounts.committer import Committer
from domain.accounts.currency import Currency
from domain.catalogue.commands import Catalogue
from domain.catalogue.matching import PlansByKey
from domain.errors import NotPossible
from domain.links.change_plans import LinkPlans
from domain.links.create import LinkCreate, ProvisioningRules
from domain.links.failing import Failing
from domain.links.network import EsimNetwork
from domain.links.readings import LinkReadings
from domain.links.status import LinkStatusSwitch
from domain.links.waiting import Waiting
from domain.lookups.answers import AnswerRules, Answers
from domain.lookups.bulk import BulkCreate
from domain.lookups.in_flight import InFlight
from domain.lookups.open_items import OpenItems
from domain.lookups.ports import NumberLookup
from domain.lookups.single import SingleLookup

CIRCUIT_FAILURES_MAX = 5  # Failures in a row before callers are spared the wait.
CIRCUIT_OPEN_S = 5.0  # Between two probes of a provider that is down.
IN_FLIGHT_MAX = 12  # Of the HTTP threads: one organization must not hold them all.


class Commands(Reading):
    """Commands and their ports."""

    @cached_property
    def provider(self) -> NumberLookup:
        """Who answers lookups; the sandbox stands outside the circuit and never opens it."""
        if not self.settings.sandbox:
            return self.circuit
        return SandboxLookup(self.circuit, self.sandbox_attempts, time.sleep)

    @cached_property
    def circuit(self) -> CircuitBreaker:
        """What spares callers the wait for a provider that is down."""
        offline = self.offline_lookup
        return CircuitBreaker(
            offline, failures_max=CIRCUIT_FAILURES_MAX, open_s=CIRCUIT_OPEN_S, probe=offline.warm
        )

    @cached_property
    def offline_lookup(self) -> OfflineLookup:
        """The provider that needs no network."""
        try:
            networks = load_networks(self.settings.mcc_mnc_file)
        except ValueError as error:
            message = f"MCC_MNC_FILE {error}"
            raise WrongSetting(message) from error
        return OfflineLookup(networks)

    @cached_property
    def committer(self) -> Committer:
        """The one writer of wallets in this process."""
        return Committer(self.log, self.persistence.turns())

    @cached_property
    def answers(self) -> Answers:
        """Cache first, then the provider."""
        rules = AnswerRules(
            cache_ttl=self.settings.lookup_cache_ttl,
            uncached=is_sandbox_number if self.settings.sandbox else _never,
            pause=time.sleep,
        )
        return Answers(self.provider, self.lookup_cache, self.clock, rules)

    @cached_property
    def single_lookup(self) -> SingleLookup:
        """The command of a single lookup."""
        has_slow_calls = self.provider.remote or self.settings.sandbox
        return SingleLookup(
            log=self.log,
            committer=self.committer,
            vault=self.vault,
            answers=self.answers,
            leases=self.leases if has_slow_calls else None,
            in_flight=InFlight(IN_FLIGHT_MAX, WAITING_MAX - IN_FLIGHT_MAX),
            postponed=InFlight(),
            clock=self.clock,
            new_id=uuid4,
        )

    @cached_property
    def bulk_create(self) -> BulkCreate:
        """The command that accepts a bulk job."""
        open_items = OpenItems(self._open_items, self.settings.job_items_open_max)
        return BulkCreate(self.log, self.committer, self.vault, open_items, uuid4)

    def _open_items(self, organization_id: UUID) -> tuple[int, int]:
        with self.views.reading() as connection:
            place = self.positions.get(connection, self.open_slices.name)
            shown = self.open_slices.items_of(connection, organization_id)
        return shown, place.position if place is not None else 0

    @cached_property
    def currency(self) -> Currency:
        """The one currency of this installation."""
        return Currency(self.log, self.settings.currency)

    @cached_property
    def accounts(self) -> Accounts:
        """Operators' commands."""
        return Accounts(self.log, self.committer, self.currency, uuid4)

    @cached_property
    def catalogue(self) -> Catalogue:
        """Operators' commands on plans."""
        return Catalogue(self.log, self._known_plans)

    def _known_plans(self) -> PlansByKey:
        """Read what plans are known by, once their table is as new as the log."""
        goal = self.log.head()
        self.projector.catch_up(goal)
        with self.views.reading() as connection:
            place = self.positions.get(connection, self.plans.name)
            if place is None or place.position < goal:
                message = "read model plans is behind the log; see: projections status"
                raise NotPossible(message)
            return self.plans.keys(connection)


def _never(_: str) -> bool:
    return False


SEED = "carrier-links"  # Of the simulator: the same installation gives the same eSIMs again.


class Links(Commands):
    """Links and their network."""

    @cached_property
    def network(self) -> EsimNetwork:
        """Where links run."""
        return self.simulated_network

    @cached_property
    def simulated_network(self) -> SimulatedNetwork:
        """The network that needs no network; its eSIMs and endpoints are in the stores."""
        sandbox = self.settings.sandbox
        return SimulatedNetwork(
            self.stores,
            self.clock,
            SEED,
            sandbox=sandbox,
            wait=Event().wait,
            patience=self.rules.deadline,
        )

    @cached_property
    def rules(self) -> ProvisioningRules:
        """What the operator has set about links."""
        settings = self.settings
        return ProvisioningRules(
            base_plan=settings.network_base_plan,
            product=settings.network_esim_product,
            currency=settings.currency,
            deadline=timedelta(seconds=settings.provisioning_deadline_s),
        )

    @cached_property
    def failing(self) -> Failing:
        """How links and changes of their plans fail."""
        network = self.network
        return Failing(self.log, self.committer, network.name, network.settles_after, self.clock)

    @cached_property
    def waiting(self) -> Waiting:
        """Who may wait for the network."""
        return Waiting(WAITING_MAX)

    @cached_property
    def link_create(self) -> LinkCreate:
        """The command that creates links."""
        return LinkCreate(
            log=self.log,
            failing=self.failing,
            offers=self.known_plans.offer,
            waiting=self.waiting,
            rules=self.rules,
            clock=self.clock,
            new_id=uuid4,
        )

    @cached_property
    def link_plans(self) -> LinkPlans:
        """The command that changes the plans of a link."""
        return LinkPlans(
            log=self.log,
            committer=self.committer,
            failing=self.failing,
            offers=self.known_plans.offer,
            waiting=self.waiting,
            rules=self.rules,
            clock=self.clock,
            new_id=uuid4,
        )

    @cached_property
    def link_status(self) -> LinkStatusSwitch:
        """The command that suspends and reactivates links."""
        return LinkStatusSwitch(self.log, self.network, self.waiting, self.clock)

    @cached_property
    def link_readings(self) -> LinkReadings:
        """What links are like now."""
        return LinkReadings(
            self.log, self.network, self.readings, self.vault, self.waiting, self.clock
        )

    @cached_property
    def known_plans(self) -> KnownPlans:
        """The terms of plans, read once for a request."""
        return KnownPlans(self.views, self.plans)
