"""One run: a script of steps by the seed, then all trouble ends, and all has to be in order."""

from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from itertools import chain, repeat
from pathlib import Path

from domain.links.network import NoSuchEndpoint
from tests.installation import Installation
from tests.simulation.checks import Holders, check
from tests.simulation.customers import Customers
from tests.simulation.quicker import quicker
from tests.simulation.template import Template, under
from tests.simulation.world import World

Does = Callable[[], object]

LINKS, STEPS = 2, 30
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
FOREVER = datetime(9999, 1, 1, tzinfo=UTC)


class Failed(AssertionError):
    """Raised for a seed whose run has not ended well; shows how it is replayed."""

    def __init__(self, seed: int, reason: BaseException, script: list[str]) -> None:
        command = f"SIMULATION_SEED={seed} python -m pytest tests/simulation -k replay"
        super().__init__(f"seed {seed}: {type(reason).__name__}: {reason}\nreplay it: {command}")
        self.seed, self.script = seed, script


class Simulation:
    """An installation of its own in a directory; `run` may be called once."""

    def __init__(
        self, seed: int, template: Template, directory: Path, world: type[World] = World
    ) -> None:
        self.seed = seed
        self.ended_well = False
        self._template = template
        self._installation = Installation(directory, like=template.files)
        with quicker():
            environment = {**self._installation.environment, "LINK_CANCEL_DAYS": "60"}
            self.world = world(seed, environment)
        self.customers = Customers(self.world, template)

    def run(self) -> None:
        """Go through the script, heal, and check; raises Failed."""
        world = self.world
        try:
            with under(world.clock.monotonic, world.new_id):
                self.customers.take_over()
                world.between = self._sometimes_ask
                for _ in range(LINKS):
                    self.customers.ask("link")  # So that there is something to be changed.
                holders = Holders(world)
                for _ in range(STEPS):
                    self._step()
                    self.customers.sometimes_finish()
                    self.customers.sometimes_cancel()
                    self.customers.sometimes_import()
                    holders.check()
                self._heal()
                check(world, self.customers, self._template)
                self.ended_well = True
        except BaseException as reason:
            if isinstance(reason, KeyboardInterrupt):
                raise
            raise Failed(self.seed, reason, world.script) from reason
        finally:
            world.close()
            self._installation.close()

    def _step(self) -> None:
        steps: list[tuple[int, Does]] = [
            (6, lambda: self.customers.ask("lookup")),
            (3, lambda: self.customers.ask("job")),
            (5, lambda: self.customers.ask("link")),
            (4, lambda: self.customers.ask("change")),
            (3, self.customers.switch),
            (1, self.customers.read),
            (1, lambda: self.customers.ask("deposit")),
            (1, self.customers.spend),
            (8, self._work),
            (9, self._let_one_die),
            (2, self._minutes),
            (1, self._next_month),
            (2, self._jump),
            (1, self._deactivate),
            (4, self._trouble),
        ]
        weights, does = zip(*steps, strict=True)
        self.world.random.choices(does, weights)[0]()

    def _sometimes_ask(self) -> None:
        if self.world.random.random() < 0.2:
            kinds = ("lookup", "job", "link", "change", "change", "deposit")
            self.customers.ask(self.world.random.choice(kinds))
        self.customers.sometimes_cancel()

    def _work(self) -> None:
        for _ in range(self.world.random.randint(1, 8)):
            self.world.act()

    def _let_one_die(self) -> None:
        """Let a process die at the k-th place from now on, or at the next of a kind."""
        if not self.world.hazards.strikes("a process dies"):
            return
        if self.world.random.random() < 0.5:
            self.world.deadly = self.world.random.choice(DEADLY)
            self.world.note(f"whoever is next dies {self.world.deadly}")
            return
        machine = self.world.random.choice(self.world.machines)
        machine.dies_in = self.world.random.randint(1, self.world.random.choice(PLACES_MAX))
        self.world.note(f"{machine.called} will die at its place number {machine.dies_in}")

    def _minutes(self) -> None:
        self._forward(self.world.random.choice((5.0, 20.0, 70.0, 600.0)))

    def _next_month(self) -> None:
        now = self.world.clock.now
        first = now.replace(day=1, hour=0, minute=0, second=0, microsecond=0)
        following = first.replace(year=now.year + now.month // 12, month=now.month % 12 + 1)
        self.world.note("a month ends")
        self._forward((following - now).total_seconds() + 70.0)

    def _forward(self, seconds: float) -> None:
        self.world.note(f"{seconds:.0f} s pass")
        self.world.clock.forward(seconds=seconds)
        assert self.world.late is not None
        self.world.late.look()

    def _jump(self) -> None:
        if self.world.hazards.strikes("the clock jumps"):
            seconds = self.world.random.choice((-7_200, -60, 60, 7_200))
            self.world.note(f"the clocks jump by {seconds} s")
            self.world.clock.jump(seconds)

    def _deactivate(self) -> None:
        """Let the network itself make a link inactive."""
        links = self.customers.ledger.of("link")
        if links:
            link = self.world.link(self.world.random.choice(links))
            if link.endpoint_id is not None:
                self.world.note(f"link {link.id} becomes inactive at the network")
                with suppress(NoSuchEndpoint):  # It may be ended.
                    self.world.simulator.deactivate(link.endpoint_id)

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

    def _heal(self) -> None:
        """End all trouble; whatever was begun ends by itself, as time passes."""
        world = self.world
        world.note("all is well again")
        world.calm_down()
        for tick_s in chain((0.0,), TICKS_S):
            world.clock.forward(seconds=tick_s)
            assert world.late is not None
            world.late.look()
            world.turn_over()
            if self._is_quiet():
                return
        raise AssertionError("it does not come to rest: " + ", ".join(self._unfinished()))

    def _is_quiet(self) -> bool:
        assert self.world.late is not None
        waits = self.world.late.is_waiting or not self.world.broker.is_empty
        return not waits and not self._unfinished()

    def _unfinished(self) -> list[str]:
        parts = self.world.outside
        parts.projector.catch_up()
        with parts.views.reading() as connection:
            work = parts.due_list.all(connection)
            jobs = parts.jobs.unfinished(connection, FOREVER, 100)
        return [f"{each.kind} {each.id}" for each in work] + [f"job {each.id}" for each in jobs]
