"""An organization that buys links, and workers that do what it asks for."""

import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from datetime import timedelta
from threading import Event, Thread
from uuid import UUID, uuid4

from app.adapters.networks.simulated.network import SimulatedNetwork
from domain.catalogue.plan import Plan
from domain.cause import Clock, utc_now
from domain.links.change_plans import ChangeRequest
from domain.links.create import LinkRequest
from domain.links.link import Link
from domain.links.plan_change import PlanChange
from domain.links.requested import Target
from domain.lookups.ports import LookupProvider
from domain.money import format_amount
from tests.domain.asking import Customer
from tests.faulty_network import FaultyNetwork
from tests.installation import PATIENCE_S, Installation, Process, SetClock, wait_until
from tests.plan_files import import_plans, plan
from workers.routes import Message, messages_for

DEADLINE_S = 60.0  # No test depends on how fast it is.
EVENTS_MAX = 10_000
LOOK_S = 0.01
PLACES = 40
THREADS = 16


class Gate:
    """A gate that holds every caller until it is opened, then may raise an error in them."""

    def __init__(self, error: Exception | None = None) -> None:
        self.reached = Event()
        self._opened = Event()
        self._error = error

    def __call__(self) -> None:
        self.reached.set()
        assert self._opened.wait(PATIENCE_S)
        if self._error is not None:
            raise self._error

    def open(self) -> None:
        self._opened.set()

    def wait(self) -> None:
        """Wait until a caller is held."""
        assert self.reached.wait(PATIENCE_S)


class Patience:
    """The monotonic clock of requests that wait; a test can let their time be over."""

    def __init__(self) -> None:
        self.ahead_s = 0.0

    def monotonic(self) -> float:
        return time.monotonic() + self.ahead_s

    def end(self) -> None:
        self.ahead_s += 2 * DEADLINE_S


class Workers:
    """Threads that do what the log of a process asks for, as its dispatcher and workers do."""

    def __init__(self, process: Process, after: int | None = None) -> None:
        self._process = process
        self._position = process.log.head() if after is None else after
        self._stopping = Event()
        self._pool = ThreadPoolExecutor(THREADS)
        self._done: list[Future[None]] = []
        self._thread = Thread(target=self._follow)
        self._thread.start()

    def stop(self) -> None:
        """End when all that was begun is done; none of it may have failed."""
        self._stopping.set()
        self._thread.join(PATIENCE_S)
        self._pool.shutdown()
        for each in self._done:
            each.result()

    def _follow(self) -> None:
        log = self._process.log
        while not self._stopping.is_set():
            seen = log.appended.count
            for recorded in log.read(self._position, EVENTS_MAX):
                self._position = recorded.position
                for message in messages_for(recorded.event):
                    self._done.append(self._pool.submit(self._work, message))
            log.appended.wait(seen, LOOK_S)

    def _work(self, message: Message) -> None:
        links, changes = self._process.provisioning, self._process.plan_changes
        stream_id = UUID(str(message.arguments[0]))
        (links if message.actor == "work_link" else changes).work(stream_id)


class Buyer(Customer):
    """One organization, seen from one process; `open` makes another one of the same files."""

    def __init__(
        self,
        installation: Installation,
        amount: str = "10.00",
        clock: Clock = utc_now,
        deadline_s: float = DEADLINE_S,
        provider: LookupProvider | None = None,
    ) -> None:
        self.installation, self.clock, self.provider = installation, clock, provider
        self.deadline_s = deadline_s
        self.process = self.open()
        self.organization_id = self.process.organization(amount)
        self._asking = ThreadPoolExecutor(PLACES + 1)
        self._workers: list[Workers] = []

    def open(self, deadline_s: float | None = None) -> Process:
        """Open the files as another process, whose requests wait so long at most."""
        process = self.installation.process(self.clock, self.provider)
        process.network = FaultyNetwork(process.bare_network)
        deadline = timedelta(seconds=deadline_s or self.deadline_s)
        process.provisioning_rules = replace(
            process.provisioning_rules, base_plan="base-1", deadline=deadline
        )
        return process

    def hire(self, process: Process | None = None, after: int | None = None) -> Workers:
        """Let workers of a process begin, with what was appended after a position."""
        self._workers.append(Workers(process or self.process, after))
        return self._workers[-1]

    def dismiss(self) -> None:
        """Stop all workers."""
        for workers in self._workers:
            workers.stop()
        self._workers.clear()

    def close(self) -> None:
        self._asking.shutdown()
        self.dismiss()

    @property
    def time(self) -> SetClock:
        """The clock of all, which a test moves."""
        return self.process.time

    @property
    def network(self) -> FaultyNetwork:
        return self.process.network

    @property
    def simulator(self) -> SimulatedNetwork:
        return self.process.bare_network

    def sell(self, called: str = "Europe", price: str = "4.00", **changes: object) -> UUID:
        """Put a plan into the catalogue; return its id."""
        plan_id = uuid4()
        import_plans(self.process, plan(called, id=str(plan_id), retail_price=price, **changes))
        self.process.projector.catch_up()
        return plan_id

    def disable(self, plan_id: UUID) -> None:
        """Take a plan off the market."""
        stored = self.process.log.get(Plan, plan_id)
        stored.switch(self.process.cause(), enabled=False)
        self.process.log.append(stored)
        self.process.projector.catch_up()

    def pay_in(self, micros: int) -> None:
        self.process.deposit(self.organization_id, format_amount(micros))

    def spend(self, micros: int) -> None:
        """Take money for something else."""
        self.process.adjust(self.organization_id, -micros)

    def create(
        self,
        plan_id: UUID,
        key: str | None = None,
        name: str | None = None,
        process: Process | None = None,
        *,
        waits: bool = True,
    ) -> tuple[Link, bool]:
        process = process or self.process
        request = LinkRequest(self.organization_id, plan_id, name, key, waits)
        return process.link_create.run(request, process.cause())

    def change(
        self,
        link_id: UUID,
        remove: Sequence[UUID] = (),
        add: Sequence[UUID] = (),
        key: str | None = None,
        process: Process | None = None,
    ) -> tuple[PlanChange, bool]:
        process = process or self.process
        request = ChangeRequest(self.organization_id, link_id, remove, add, key)
        return process.link_plans.run(request, process.cause())

    def own(self, called: str = "Europe", **changes: object) -> Link:
        """Get a link with a plan that costs nothing; workers have to be there."""
        return self.create(self.sell(called, "0.00", **changes))[0]

    def switch(self, link_id: UUID, target: Target, process: Process | None = None) -> Link:
        process = process or self.process
        return process.link_status.run(self.link(link_id), target, process.cause())

    def create_later(self, *arguments: object, **more: object) -> "Future[tuple[Link, bool]]":
        """Let a thread ask for a link."""
        return self._asking.submit(self.create, *arguments, **more)  # type: ignore[arg-type]  # as they come

    def change_later(self, *arguments: object, **more: object) -> "Future[tuple[PlanChange, bool]]":
        """Let a thread ask for a change."""
        return self._asking.submit(self.change, *arguments, **more)  # type: ignore[arg-type]  # as they come

    def switch_later(self, *arguments: object, **more: object) -> "Future[Link]":
        """Let a thread suspend or reactivate a link."""
        return self._asking.submit(self.switch, *arguments, **more)  # type: ignore[arg-type]  # as they come

    def until_waiting(self, count: int, process: Process | None = None) -> None:
        """Wait until so many requests of a process wait."""
        places = (process or self.process).waiting
        wait_until(lambda: sum(each.count for each in places.values()) == count)


NewBuyer = Callable[..., Buyer]
