"""One run: the requests of a seed amid trouble; when that ends all has to be in order."""

from datetime import UTC, timedelta
from itertools import chain, repeat
from pathlib import Path

from domain.links.link import Link
from tests.installation import Installation
from tests.simulation.checks import EVENTS_MAX, Holders, check, has_ended, is_unknown
from tests.simulation.customers import Customers
from tests.simulation.story import Request, requests
from tests.simulation.template import Template, under
from tests.simulation.world import World

BESIDE = 0.52  # Of the steps are none of a customer.
BETWEEN = 0.2  # Of what comes between others is the next request.
PLACES_MAX = (4, 12)  # The longest piece of work passes about as many.
DEADLY = (
    "before a commit",
    "after a commit",
    "after a publish",
    "before a position moves",
    "before a position is committed",
    "before create_endpoint",
    "after create_endpoint",
    "after add_plan",
    "after remove_plan",
    "after suspend",
    "after release_esim",
)
# How time moves on once all is calm: a second at a time, then in strides, for a clock that was set
# back has to catch up, and a job that was swept in vain waits for up to an hour.
TICKS_S = (*repeat(2.0, 30), *repeat(30.0, 20), *repeat(600.0, 60))


class Failed(AssertionError):
    """Raised for a seed whose run has not ended well; shows every step until then."""

    def __init__(self, seed: int, reason: BaseException, script: list[str]) -> None:
        why = f"seed {seed}: {type(reason).__name__}: {reason}"
        super().__init__("\n".join([why, *script, why]))


class Run:
    """The story of a seed in an installation of its own, in a directory; runs once."""

    def __init__(
        self, seed: int, template: Template, directory: Path, world: type[World] = World
    ) -> None:
        self.seed = seed
        self._installation = Installation(directory, like=template.files)
        environment = {**self._installation.environment, "LINK_CANCEL_DAYS": "60"}
        self.world = world(seed, environment)
        self.customers = Customers(self.world, template)
        self._story = requests(seed, len(template.plans))

    def close(self) -> None:
        self.world.close()
        self._installation.close()

    def settle(self) -> None:
        """Let time pass until whatever was begun has ended by itself."""
        world = self.world
        for tick_s in chain((0.0,), TICKS_S):
            world.forward(tick_s)
            world.turn_over()
            if world.is_quiet and not self.unfinished():
                return
        raise AssertionError("it does not come to rest: " + ", ".join(self.unfinished()))

    def unfinished(self) -> list[str]:
        roles, log = self.customers.roles, self.world.outside.log
        roles.read()
        return [name for name, it in roles.streams.items() if not has_ended(log.get(*it))]


class Simulation(Run):
    """The story amid all hazards, and checks that everything ends well."""

    def run(self) -> None:
        """Go through the story, heal, and check; raises Failed."""
        world = self.world
        try:
            with under(world.clock.monotonic, world.new_id):
                world.hazards.is_calm = True
                self.customers.register()
                world.hazards.is_calm = False
                world.between = self._sometimes_next
                holders = Holders(world)
                while self._next():
                    holders.check()
                    while world.random.random() < BESIDE:
                        self._beside()
                        holders.check()
                world.note("all is well again")
                world.calm_down()
                self.customers.import_at_last()
                self.settle()
                check(world, self)
        except BaseException as reason:
            if isinstance(reason, KeyboardInterrupt):
                raise
            raise Failed(self.seed, reason, world.script) from reason
        finally:
            self.close()

    def _next(self) -> bool:
        """Let the customers send their next request; False when there is none."""
        number, request = next(self._story, (0, None))
        if request is not None:
            self.world.turn_to(number)
            self.send(request)
        return request is not None

    def send(self, request: Request) -> None:
        """Send a request to any process, and note the answer, if there is one."""
        world, customers = self.world, self.customers
        machine = world.somebody()
        if machine is None:
            return
        customers.roles.read()
        world.note(f"{machine.called}: {request}")
        reply = world.live(machine, lambda: customers.ask(machine, request))
        customers.roles.read()
        world.note(f"{request}: {(reply and (reply[0], reply[1].get('error'))) or 'no answer'}")
        if reply is not None:
            customers.hear(request, *reply)

    def _sometimes_next(self) -> None:
        if self.world.random.random() < BETWEEN:
            self._next()

    def _beside(self) -> None:
        steps = {
            self._work: 8,
            self._let_one_die: 9,
            self._minutes: 2,
            self._next_month: 1,
            self._jump: 2,
            self._trouble: 4,
        }
        self.world.random.choices([*steps], [*steps.values()])[0]()

    def _work(self) -> None:
        for _ in range(self.world.random.randint(1, 8)):
            self.world.act()

    def _let_one_die(self) -> None:
        """Let a process die at the k-th place from now on, or at the next of a kind."""
        world, random = self.world, self.world.random
        if not world.hazards.strikes("a process dies"):
            return
        if random.random() < 0.5:
            world.deadly = random.choice(DEADLY)
            world.note(f"whoever is next dies {world.deadly}")
            return
        machine = random.choice(world.machines)
        machine.dies_in = random.randint(1, random.choice(PLACES_MAX))
        world.note(f"{machine.called} will die at its place number {machine.dies_in}")

    def _minutes(self) -> None:
        seconds = self.world.random.choice((5.0, 20.0, 70.0, 600.0))
        self.world.note(f"{seconds:.0f} s pass")
        self.world.forward(seconds)

    def _next_month(self) -> None:
        now = self.world.clock.now
        first = now.replace(day=1, hour=0, minute=0, second=0, microsecond=0)
        following = first.replace(year=now.year + now.month // 12, month=now.month % 12 + 1)
        self.world.note("a month ends")
        self.world.forward((following - now).total_seconds() + 70.0)

    def _jump(self) -> None:
        if self.world.hazards.strikes("the clock jumps"):
            seconds = self.world.random.choice((-7_200, -60, 60, 7_200))
            if not self._may_jump(seconds):
                return
            self.world.note(f"the clocks jump by {seconds} s")
            self.world.clock.jump(seconds)

    def _may_jump(self, seconds: float) -> bool:
        """Tell whether the service can bear it that all clocks jump together (docs/operations.md).

        Ahead: not while the outcome of a call is unknown, whose wait would end. Back: not before
        the end of a month, which may be closed, or the start of a plan, which would lie ahead.
        """
        log, now = self.world.outside.log, self.world.clock.now
        to = now + timedelta(seconds=seconds)
        if seconds > 0:
            self.customers.roles.read()
            return not any(is_unknown(log.get(*it)) for it in self.customers.roles.streams.values())
        events = (recorded.event for recorded in log.read(0, EVENTS_MAX))
        begun = (each.timestamp for each in events if isinstance(each, Link.PlanStarted))
        return to.month == now.month and all(at.replace(tzinfo=UTC) <= to for at in begun)

    def _trouble(self) -> None:
        random, world = self.world.random, self.world
        seconds = random.choice((1.0, 5.0, 20.0, 90.0))
        what = random.choice(("provider", "network", "projector", "broker", "queue"))
        match what:
            case "broker":
                world.broker.away_until_s = world.clock.elapsed_s + seconds
            case "queue":
                world.note(f"the queues are purged of {world.broker.purge()} messages")
                return
            case _:
                world.take_down(what, seconds)
        world.note(f"the {what} is down for {seconds:.0f} s")
