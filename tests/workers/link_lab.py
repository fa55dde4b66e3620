"""One organization, its links and the network they run on, worked on by one life after another."""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from typing import Literal
from uuid import UUID, uuid4

import pytest

from app.adapters.networks.simulated.network import SimulatedNetwork
from app.bootstrap.providers import SEED
from domain.catalogue.plan import PlanTerms, SponsorProfile
from domain.cost import Cost
from domain.errors import ProvisioningError
from domain.links.change_plans import ChangeRequest
from domain.links.create import LinkRequest
from domain.links.link import EndKind, Link
from domain.links.network import Endpoint
from domain.links.plan_change import PlanChange
from domain.money import parse_amount
from projections.models.due import Due
from tests.domain.asking import Customer
from tests.faulty_network import FaultyNetwork, Killed
from tests.installation import Installation, Process, SetClock
from tests.workers.late_network import LateNetwork
from tests.workers.link_checks import DEPOSIT, check
from tests.workers.places import Places, watch_commits, watch_reads
from workers.routes import Message

PRICE = "4.00"
CANCEL_WITHIN = timedelta(days=14)
TICK_S = 2
TICKS_MAX = 120  # Four minutes: whatever happens at the network has settled long before.


class Lab(Customer):
    """Drives the sagas one step of a test after another, with no thread and no real time.

    The network outlives every worker. A life ends by `Killed`; the next one has the same files.
    """

    def __init__(self, installation: Installation, deposit: str = DEPOSIT) -> None:
        self.installation, self.is_odd = installation, False
        installation.environment["LINK_CANCEL_DAYS"] = str(CANCEL_WITHIN.days)
        self.clock = SetClock()
        self.commits, self.reads = Places(), Places()
        self._plans: dict[UUID, PlanTerms] = {}
        process = installation.process(self.clock)
        self.simulator = SimulatedNetwork(
            process.stores, self.clock, SEED, sandbox=True, wait=self._wait
        )
        self.late = LateNetwork(self.simulator, self.clock)
        self.network = FaultyNetwork(self.late)
        self._begin(process)
        self.organization_id = process.organization(deposit)

    def _begin(self, process: Process) -> None:
        process.network = self.network
        process.publisher = self
        watch_commits(process, self.commits)
        watch_reads(process, self.reads)
        self.process = process

    def restart(self) -> None:
        """Begin another life over the same files: nothing of the last one but these is there."""
        self.process.close()  # Its connections end with it.
        self._begin(self.installation.process(self.clock))

    def other_process(self) -> Process:
        """Open the files as another process would, which runs beside this one.

        Their clocks are alike: what two workers decide at once has the same bytes.
        """
        process = self.installation.process(self.clock)
        process.network = self.network
        return process

    def plan(
        self,
        provider_plan_id: str = "eu-1",
        price: str = PRICE,
        sponsors: Sequence[str] = ("sp",),
        cost: Cost | None = None,
    ) -> UUID:
        """Offer a plan; return its id."""
        terms = PlanTerms(
            name=f"Plan {provider_plan_id}",
            provider_plan_id=provider_plan_id,
            retail_price_micros=parse_amount(price),
            currency="USD",
            data_mb=1_000,
            validity_days=7,
            coverage_type="local",
            sponsor_profiles=[SponsorProfile(each, each.upper(), "#fff") for each in sponsors],
            coverage=[],
            cost=cost,
        )
        plan_id = uuid4()
        self._plans[plan_id] = terms
        return plan_id

    def request(self, plan_id: UUID | None = None, deadline_s: int = 15) -> UUID:
        """Ask for a link as the web process does; nobody works on it yet."""
        wanted = plan_id or self.plan()
        new = uuid4()
        request = LinkRequest(self.organization_id, wanted, None, None)
        command = self.process.link_create
        rules = replace(command.rules, deadline=timedelta(seconds=deadline_s))
        link = replace(command, rules=rules)._requested(  # noqa: SLF001  # What comes before the wait.
            request, new, self._plans[wanted], self.process.cause()
        )
        self.process.log.append(link)
        return new

    def work(self, link_id: UUID) -> Link:
        """Give the message of a link to the worker of this life; return what became of it."""
        self.live(lambda: self.process.provisioning.work(link_id))
        return self.link(link_id)

    def create(self, provider_plan_id: str = "eu-1", price: str = PRICE) -> Link:
        return self.work(self.request(self.plan(provider_plan_id, price)))

    def request_change(
        self, link_id: UUID, remove: Sequence[UUID] = (), add: Sequence[UUID] = ()
    ) -> UUID:
        """Ask for a change of plans as the web process does, all of it paid for."""
        new = uuid4()
        request = ChangeRequest(self.organization_id, link_id, remove, add, None)
        command = replace(self.process.link_plans, offers=self.offer)
        command._start(  # noqa: SLF001  # What comes before the wait.
            request, new, time.monotonic(), self.process.cause()
        )
        return new

    def work_change(self, change_id: UUID) -> PlanChange:
        """Give the message of a change to the worker of this life; return what became of it."""
        self.live(lambda: self.process.plan_changes.work(change_id))
        return self.plan_change(change_id)

    def work_lost_order(self, lost_id: UUID) -> None:
        """Give the message of a lost order to the worker of this life."""
        self.live(lambda: self.process.lost_orders.work(lost_id))

    def change(
        self, link_id: UUID, remove: Sequence[UUID] = (), add: Sequence[str] = ()
    ) -> PlanChange:
        """Ask for a change, each plan for 1.00, and let it be worked on."""
        plans = [self.plan(each, "1.00") for each in add]
        return self.work_change(self.request_change(link_id, remove, plans))

    def switch(self, link_id: UUID, target: Literal["active", "suspended"]) -> None:
        """Suspend or reactivate a link, as the web process does."""
        with suppress(ProvisioningError):
            self.process.link_status.run(self.link(link_id), target, self.process.cause())

    def finish(self, link_id: UUID, kind: EndKind) -> Link:
        """End or cancel a link, as the web process does."""
        ending, link = self.process.link_ending, self.link(link_id)
        run = ending.cancel if kind == "cancel" else ending.end
        return run(link, self.process.cause())

    def expire(self, link_id: UUID) -> None:
        """Fail a link as the request does that has waited long enough, unless it is answered."""
        self.process.failing.expire(self.link(link_id))

    def expire_change(self, change_id: UUID) -> None:
        self.process.failing.expire(self.plan_change(change_id))

    def forget_faults(self) -> None:
        """Let the network work, and nothing happen at commits or reads, from now on."""
        self.commits.forget()
        self.reads.forget()
        self.network = FaultyNetwork(self.late)
        self.restart()

    def live(self, life: Callable[[], object]) -> bool:
        """Let this life do something; if it is killed by it, begin another one and tell so."""
        try:
            life()
        except Killed:
            self.restart()
            return False
        return True

    def sweep(self, after_s: float = 0.0) -> None:
        """Follow the log and ask for what is due by then; it is worked on at once."""
        self.clock.forward(seconds=after_s)
        self.process.projector.catch_up()
        self.process.due_work.beat()

    def publish(self, message: Message) -> None:
        """Work on a message, as whoever takes it from the queue."""
        stream_id = UUID(str(message.arguments[0]))
        works: dict[str, Callable[[UUID], object]] = {
            "work_link": self.work,
            "work_plan_change": self.work_change,
            "work_lost_order": self.work_lost_order,
        }
        works[message.actor](stream_id)

    def backlog(self, queue: str) -> int:
        """Return 0, because nothing waits in this queue."""
        assert queue == "provision"
        return 0

    def unfinished(self) -> list[Due]:
        return self.process.ask(self.process.due_list.all)

    def settle(self) -> None:
        """Let time pass and the sweep do its work, until nothing is left to do."""
        for _ in range(TICKS_MAX):
            self.late.look()
            self.sweep()
            if not self.late.is_waiting and not self.unfinished():
                return
            self.clock.forward(seconds=TICK_S)
        raise AssertionError(self.unfinished())

    def plan_change(self, change_id: UUID) -> PlanChange:
        return self.process.log.get(PlanChange, change_id)

    def plans_of(self, link_id: UUID) -> list[str]:
        return [each.plan.provider_plan_id for each in self.link(link_id).current_activations]

    def only(self, *iccids: str) -> None:
        """Let the network show only these eSIMs as free, whoever holds them."""
        self.simulator.available_esims = lambda *_, page, **__: iccids if page == 0 else ()

    def never_tell_addons(self) -> None:
        """Let the network answer a creation without the id of its first add-on."""
        create = self.simulator.create_endpoint

        def silent(*args: str, **options: float) -> Endpoint:
            endpoint = create(*args, **options)
            return Endpoint(endpoint.endpoint_id, endpoint.iccid, endpoint.reference)

        self.simulator.create_endpoint = silent

    def offer(self, _organization_id: UUID, plan_id: UUID) -> PlanTerms:
        return self._plans[plan_id]

    def _wait(self, seconds: float) -> None:
        self.clock.forward(seconds=seconds)


@pytest.fixture
def lab(installation: Installation) -> Iterator[Lab]:
    """A lab in which all has ended well behind each test; of one that `is_odd` only the log."""
    made = Lab(installation)
    yield made
    made.check() if made.is_odd else check(made)
