"""The installation and all around it: a few processes, a broker, a network, and what they do."""

from collections import Counter
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, TypeVar, cast
from uuid import UUID

from app.adapters.networks.simulated.network import SimulatedNetwork
from app.settings import Settings
from domain.errors import ServiceUnavailable
from domain.links.link import Link, Stage
from tests.faulty_network import Killed
from tests.simulation.broker import Broker, BrokerAway
from tests.simulation.clock import SimulatedClock
from tests.simulation.hazards import TWIN, Hazards
from tests.simulation.machine import Machine
from tests.simulation.outside import BUYS, WatchedNetwork
from tests.simulation.story import chance
from tests.workers.late_network import LateNetwork
from tests.workers.link_checks import Books, check_esims, check_network
from workers.fees import request_round
from workers.routes import Message, messages_for

if TYPE_CHECKING:
    from tests.workers.link_lab import Lab

MACHINES = 3
READ = "after reading the log"
DEPTH_MAX = 3  # Of those who come between others; each of them is a whole piece of work.
RECENT_MAX = 3  # Messages that may come again while they are worked on.
WAITS_S = (0.05, 0.3, 1.0, 2.5)  # What may pass while one waits a turn.
FRESH_S = 0.3  # More than a request waits for a read model.
TROUBLE = (BrokerAway, ServiceUnavailable)  # What followers and workers bear, and try again.
ROLES = ("deliver",) * 6 + ("dispatch",) * 3 + ("project",) * 3 + ("sweep", "fees", "time", "time")

T = TypeVar("T")


class World:
    """One thread moves everything, and each choice follows from the seed."""

    def __init__(self, seed: int, environment: dict[str, str]) -> None:
        self.seed = seed
        self.random = chance(seed)
        self.clock = SimulatedClock()
        self.hazards = Hazards(seed)
        self.broker = Broker(self.clock, self.hazards)
        self.script: list[str] = []
        self.stopped: list[str] = []  # Read models, and why.
        self.deadly = ""  # A place: whoever comes there next dies.
        self.calls: Counter[tuple[str, str]] = Counter()  # Changing calls by name and reference.
        self.between: Callable[[], object] = int  # What customers do while others work.
        self.late: LateNetwork | None = None
        self._settings = Settings.from_env(environment)
        self._down_until_s: dict[str, float] = {}
        self._depth = self._turns = 0
        self._has_twin = False
        self._recent: list[Message] = []
        self._busy: set[tuple[Machine, str]] = set()
        self._opened: list[Machine] = []
        self.outside = self.open("outside")  # Nothing ever happens to it.
        self.simulator = self._network()
        self.late = LateNetwork(self.simulator, self.clock)
        self.machines = [self.open(f"p{number}") for number in range(MACHINES)]

    def _network(self) -> Any:
        """Make the network of all processes, with its own side."""
        return SimulatedNetwork(
            self.outside.stores,
            self.clock.network,
            "simulation",
            sandbox=True,
            wait=lambda seconds: self.clock.forward(seconds=seconds),
        )

    def deactivate(self, endpoint_id: str) -> None:
        """Make an endpoint inactive, as the network does by itself."""
        self.simulator.play(endpoint_id, lambda it, now: it.stopped("inactive", now))

    def reach(self, machine: Machine) -> Any:
        """Return the network as one process reaches it."""
        return WatchedNetwork(machine, self.late)

    def check_network(self, books: Books, links: Sequence[Link]) -> None:
        """Expect that the network knows the same links as the log, once all has ended."""
        seen = cast("Lab", SimpleNamespace(process=self.outside, simulator=self.simulator))
        check_esims(seen, [*links], books)
        check_network(seen, [link for link in links if link.stage is Stage.ACTIVE])

    def open(self, name: str) -> Machine:
        """Start a process over the files."""
        self._opened.append(Machine(self, self._settings, name))
        return self._opened[-1]

    def close(self) -> None:
        for machine in self._opened:
            machine.close()

    def turn_to(self, number: int) -> None:
        """Let all choices follow from the number of a request, from now on."""
        self.hazards.number = number
        self.random = chance(self.seed, number, "others")

    def new_id(self) -> UUID:
        return UUID(int=self.hazards.draw("an id").getrandbits(128), version=4)

    def random_bytes(self, count: int) -> bytes:
        return self.hazards.draw("bytes").randbytes(count)

    def link(self, link_id: UUID) -> Link:
        return self.outside.log.get(Link, link_id)

    def note(self, text: str) -> None:
        """Write down a step of the script."""
        self.script.append(f"{self.clock.elapsed_s:10.2f} {'  ' * self._depth}{text}")

    def note_call(self, call: str, args: Sequence[Any]) -> None:
        """Count a call that makes something, by the reference that it is made under."""
        if call in BUYS:
            self.calls[call, str(args[-1])] += 1

    def strikes(self, name: str, call: str) -> bool:
        """Tell whether something goes wrong with a call of the network."""
        return self.hazards.strikes(name, call)

    def kills(self, machine: Machine, place: str) -> bool:
        """Tell whether a process dies at this place."""
        if self.hazards.is_calm or place != self.deadly:
            return not self.hazards.is_calm and machine.is_last(place)
        self.deadly = ""
        return True

    def expect_published(self, after: int, until: int) -> None:
        """Expect that the broker has confirmed what these events ask for."""
        for recorded in self.outside.log.read(after, until - after):
            for message in messages_for(recorded.event):
                assert message in self.broker.confirmed, f"{message} is passed over"

    def forward(self, seconds: float) -> None:
        """Let time pass, and happen what is late until then."""
        assert self.late is not None
        self.clock.forward(seconds=seconds)
        self.late.look()

    @property
    def is_quiet(self) -> bool:
        return self.broker.is_empty and self.late is not None and not self.late.is_waiting

    def is_down(self, what: str) -> bool:
        return self.clock.elapsed_s < self._down_until_s.get(what, 0.0)

    def take_down(self, what: str, seconds: float) -> None:
        self._down_until_s[what] = self.clock.elapsed_s + seconds

    def calm_down(self) -> None:
        """Let nothing go wrong any more."""
        self.hazards.is_calm = True
        self.deadly = ""
        self.broker.away_until_s = 0.0
        self._down_until_s.clear()
        for machine in self.machines:
            machine.dies_in = 0

    def somebody(self) -> Machine | None:
        """Return a process that has a thread to spare."""
        free = [each for each in self.machines if not each.is_committing]
        return self.random.choice(free) if free else None

    def live(self, machine: Machine, life: Callable[[], T]) -> T | None:
        """Let a process do something; one that dies of it is replaced. None when it has died."""
        self._depth += 1
        try:
            return life()
        except Killed:
            assert machine.is_dead
            if machine in self.machines:  # Else one of its other threads was the first to go.
                place = self.machines.index(machine)
                self.machines[place] = self.open(machine.called)
            return None
        finally:
            self._depth -= 1

    def interleave(self, place: str, of: int) -> None:
        """Perhaps let others come between a process and its next step."""
        if self._depth >= DEPTH_MAX or self.random.randrange(of):
            return
        if self.hazards.strikes("somebody else comes between"):
            self._depth += 1
            self._come_between(place)
            self._depth -= 1

    def _come_between(self, place: str) -> None:
        """Let another follower, a twin of a message, a customer, or anybody else come."""
        machine, which = self.somebody(), self.random.random()
        if machine is not None and place == READ:
            self.note("meanwhile the log grows, and another follower is faster:")
            self.between()
            self.act()
            self._do(self.random.choice(("project", "dispatch")), self.random.choice(self.machines))
        elif machine is not None and self._recent and which < 0.4:
            self.note("meanwhile:")
            message = self.random.choice(self._recent)
            if message.actor != "charge_fees":  # One thread of a process does that.
                self._work_on(machine, message)
        elif which < 0.7:
            self.between()
        else:
            self.act()

    def meet_a_twin(self, machine: Machine, message: Message) -> None:
        """Let another process be faster at the step that a process is about to do by a message.

        No time passes in between, so both write the same bytes.
        """
        others = [each for each in self.machines if each is not machine and not each.is_committing]
        if others and not self._has_twin:
            self.note(f"{TWIN}:")
            self._has_twin = True  # A twin has none of its own.
            self._work_on(self.random.choice(others), message)
            self._has_twin = False

    def wait_a_turn(self) -> None:
        """Let time pass and others work, while somebody waits for them."""
        self.clock.forward(seconds=self.random.choice(WAITS_S))
        if self.hazards.is_calm:
            self.turn_over()
            return
        if self._depth >= DEPTH_MAX:
            return
        for _ in range(self.random.randint(1, 4)):
            self.act()
        self.between()

    def let_project(self) -> None:
        """Let so much time pass that whoever waits for a read model gives up, or has it."""
        self.clock.forward(seconds=FRESH_S)
        self.turn_over() if self.hazards.is_calm else self.act()

    def act(self) -> None:
        """Let any process do any of its duties."""
        machine = self.somebody()
        if machine is not None:
            self._do(self.random.choice(ROLES), machine)

    def turn_over(self) -> None:
        """Let one process do all of its duties, as far as there is anything to do."""
        at = self._turns % len(self.machines)
        self._turns += 1
        for duty in ("project", "dispatch", "sweep", "fees"):
            self._do(duty, self.machines[at])
        while not self.broker.is_empty and self._do("deliver", self.machines[at]):
            pass
        self._do("project", self.machines[at])

    def _do(self, duty: str, machine: Machine) -> bool:
        """Do a duty, unless a thread of that process is at it; True when something was done."""
        if duty == "time":
            self.forward(self.random.choice(WAITS_S))
            return True
        if duty == "deliver":
            return self._deliver(machine)
        if (machine, duty) in self._busy or (duty == "project" and self.is_down("projector")):
            return False
        work: Callable[[], object] = getattr(self, f"_{duty}")
        self._busy.add((machine, duty))
        try:
            self.live(machine, lambda: work(machine))  # type: ignore[call-arg]  # a method of ours
        except TROUBLE as trouble:
            self.note(f"{machine.called} could not {duty}: {type(trouble).__name__}")
        finally:
            self._busy.discard((machine, duty))
        return True

    def _deliver(self, machine: Machine) -> bool:
        message = self.broker.take()
        if message is None:
            return False
        self._recent = [message, *self._recent][:RECENT_MAX]
        self._work_on(machine, message)
        return True

    def _work_on(self, machine: Machine, message: Message) -> None:
        self.note(f"{machine.called} takes {message.actor} {message.arguments}")
        try:
            self.live(machine, lambda: machine.work(message))
        except TROUBLE as trouble:
            self.note(f"{machine.called} failed at it: {type(trouble).__name__}")
            if self.random.random() < 0.5:  # Else it was the last retry.
                self.broker.give_back(message)
        if machine.is_dead:
            self.broker.give_back(message)

    def _dispatch(self, machine: Machine) -> None:
        while machine.dispatcher.step() and self.hazards.is_calm:
            pass

    def _project(self, machine: Machine) -> None:
        while machine.projector.step() and self.hazards.is_calm:
            pass

    def _sweep(self, machine: Machine) -> None:
        machine.due_work.beat()

    def _fees(self, machine: Machine) -> None:
        request_round(machine.publisher)
        machine.month_end.run()
