"""The network, and what partners can ask of it."""

from datetime import timedelta
from functools import cached_property
from threading import Event
from uuid import uuid4

from app.container.commands import Commands
from app.plan_terms import KnownPlans
from app.providers.simulated_network.network import SimulatedNetwork
from app.threads import WAITING_MAX
from domain.links.change_plans import LinkPlans
from domain.links.create import LinkCreate, ProvisioningRules
from domain.links.failing import Failing
from domain.links.network import EsimNetwork
from domain.links.readings import LinkReadings
from domain.links.status import LinkStatusSwitch
from domain.links.waiting import Waiting

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
