"""One process of the simulated installation: the real container, which can die at any place."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from threading import Event
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast
from uuid import UUID

from dramatiq.brokers.stub import StubBroker
from eventsourcing.persistence import OperationalError, StoredEvent
from sqlalchemy import event

from app.adapters.databases import Databases
from app.adapters.lookups.sandbox import SandboxLookup
from app.bootstrap.container import part
from app.settings import Settings
from domain.accounts.committer import Command, Committer
from domain.links.network import EsimNetwork
from domain.links.plan_change import PlanChange
from domain.log.log import Log
from domain.log.signal import Signal
from domain.lookups.ports import LookupProvider
from projections.engine.positions import Position, Positions
from projections.engine.projector import Projector
from projections.stores.counters import Counters
from projections.stores.personal_keys import PersonalKeys
from tests.faulty_network import Killed
from tests.installation import Process
from tests.simulation.hazards import TWIN
from tests.simulation.outside import Lookups
from workers.actors import register
from workers.routes import Dispatcher, Message, Publisher, saga_message

if TYPE_CHECKING:
    from tests.simulation.world import World

INTENTS = {PlanChange.PlanRemovalStarted.TOPIC, PlanChange.PlanAdditionStarted.TOPIC}
NO_SYNC = "PRAGMA synchronous = OFF"  # Nobody cuts the power of a test.


class Machine(Process):
    """A process whose threads are taken in turns by the one thread of the simulation.

    `dies_in` counts the places that it still passes; 0 means that it lives on.
    """

    def __init__(self, world: "World", settings: Settings, name: str) -> None:
        super().__init__(settings, world.clock)
        self.monotonic, self.new_id = world.clock.monotonic, world.new_id
        self.world, self.called = world, name
        self.is_dead = self.is_committing = False
        self.dies_in = 0
        self._network = world.reach(self) if world.late is not None else None

    def passes(self, place: str, *, others: bool = True, of: int = 1) -> None:
        """Pass a place: the process may end here, or somebody else come between."""
        self.stops_if_dead()
        if self is self.world.outside:
            return
        if self.world.kills(self, place):
            self.is_dead = True
            self.world.note(f"{self.called} dies {place}")
            raise Killed
        if others and not self.world.hazards.is_calm:
            self.world.interleave(place, of)
            self.stops_if_dead()

    def is_last(self, place: str) -> bool:
        """Count a place that is passed, and tell whether it is the last one."""
        if not self.dies_in or place.startswith("after reading"):  # That is before the next place.
            return False
        self.dies_in -= 1
        return not self.dies_in

    def stops_if_dead(self) -> None:
        if self.is_dead:
            raise Killed

    def work(self, message: Message) -> None:
        """Do what the actor of a message does."""
        self.actors.get_actor(message.actor).fn(*message.arguments)

    @part
    def actors(self) -> StubBroker:
        broker = StubBroker(middleware=[])
        register(broker, self, lambda: False)
        return broker

    @part
    def log(self) -> Log:
        log = super().log
        recorder = cast("Any", log.recorder)
        opened = recorder.datastore.pool._create_connection  # noqa: SLF001  # Where they come from.

        def fast() -> Any:
            connection = opened()
            connection.cursor().execute(NO_SYNC)
            return connection

        recorder.datastore.pool._create_connection = fast  # noqa: SLF001  # The same.
        recorder.insert_events = self._inserting(recorder.insert_events)
        log.appended = Turns(self)
        cast("Any", log).hurry = self.world.let_project
        cast("Any", log).find = self._passing("after reading a stream", log.find)
        cast("Any", log).find_all = self._passing("after reading wallets", log.find_all)
        cast("Any", log).follow = self._passing("after reading the log", log.follow)
        return log

    @part
    def databases(self) -> Databases:
        opened = super().databases
        for each in opened:
            event.listen(each.engine, "connect", lambda raw, _: raw.execute(NO_SYNC))
        return opened

    @part
    def positions(self) -> Positions:
        positions = Positions()
        advance = positions.advance

        def moved(*args: Any) -> None:
            """Die in the transaction; nobody else comes while it holds the lock."""
            self.passes("before a position moves", others=False)
            _, (place, *_), last, *_ = args
            if place.name == Dispatcher.name:
                self.world.expect_published(place.position, last.position)
            advance(*args)
            self.passes("before a position is committed", others=False)

        cast("Any", positions).advance = moved
        return positions

    @part
    def projector(self) -> Projector:
        """No handler of a read model ever fails, whoever else projects."""
        projector = super().projector
        stop: Any = projector._stop  # noqa: SLF001 - no other place needs it.

        def stopped(places: Sequence[Position], why: str, *more: Any) -> None:
            self.world.stopped.extend(f"{place.name}: {why}" for place in places)
            stop(places, why, *more)

        cast("Any", projector)._stop = stopped  # noqa: SLF001 - as above.
        return projector

    @part
    def committer(self) -> Committer:
        return InTurn(self.log, self)

    @part
    def counters(self) -> Counters:
        counters = super().counters
        acquire, release = counters.acquire, counters.release

        def given_back(key: UUID, holder: str) -> None:
            self.stops_if_dead()  # Whoever was killed gives nothing back.
            release(key, holder)

        cast("Any", counters).acquire = self._passing("after taking a lease", acquire)
        cast("Any", counters).release = given_back
        return counters

    @part
    def vault(self) -> PersonalKeys:
        return PersonalKeys(self.databases.keys, self.world.random_bytes)

    @part
    def provider(self) -> LookupProvider:
        pause = lambda seconds: self.world.clock.forward(seconds=seconds)  # noqa: E731  # One call.
        return SandboxLookup(Lookups(self), self.counters.count_attempt, pause)

    @part
    def network(self) -> EsimNetwork:
        return cast("EsimNetwork", self._network or self.bare_network)

    @part
    def publisher(self) -> Publisher:  # type: ignore[override]  # any will do
        return Publishing(self)

    def _passing(self, place: str, call: Callable[..., Any]) -> Callable[..., Any]:
        def passed(*args: Any, **options: Any) -> Any:
            self.stops_if_dead()
            answer = call(*args, **options)
            self.passes(place, others=not self.views.engine.pool.checkedout())  # Else it is locked.
            return answer

        return passed

    def _inserting(self, insert: Callable[..., Any]) -> Callable[..., Any]:
        def inserted(stored: Sequence[StoredEvent], **options: Any) -> Any:
            hazards, note = self.world.hazards, self.world.note
            if stored[0].topic in INTENTS and hazards.strikes(TWIN):
                self.stops_if_dead()
                self.world.meet_a_twin(
                    self, saga_message("plan_change", UUID(str(stored[0].originator_id)))
                )
            self.passes("before a commit")
            if hazards.strikes("the commit is refused"):
                note("the commit is refused")
                raise OperationalError
            positions = insert(stored, **options)
            self.passes("after a commit")
            if hazards.strikes("the reply to a commit is lost"):
                note("the reply to a commit is lost")
                raise OperationalError
            return positions

        return inserted


class Turns(Signal):
    """Whoever waits for the log lets the others have their turn."""

    def __init__(self, machine: Machine) -> None:
        super().__init__()
        self._machine = machine

    def wait(self, seen: int, timeout_s: float) -> bool:
        del seen, timeout_s
        self._machine.stops_if_dead()
        self._machine.world.wait_a_turn()
        self._machine.stops_if_dead()
        return True

    @contextmanager
    def watching(self, stream: UUID) -> Iterator[Event]:
        """Lend news that come at every turn: whoever hears them looks himself."""
        del stream
        waits = partial(self.wait, 0)
        yield cast("Event", SimpleNamespace(set=int, clear=int, wait=waits))


class InTurn(Committer):
    """The committer without its thread: whoever submits does its work."""

    def __init__(self, log: Log, machine: Machine) -> None:
        super().__init__(log)
        self._machine = machine

    def submit(self, command: Command) -> None:
        assert not self._machine.is_committing, "a process commits one thing at a time"
        self._machine.is_committing = True
        try:
            self._process([command])
        finally:
            self._machine.is_committing = False


class Publishing:
    """The broker as one process reaches it."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        self.backlog = machine.world.broker.backlog

    def publish(self, message: Message) -> None:
        self._machine.passes("before a publish")
        self._machine.world.broker.publish(message)
        self._machine.passes("after a publish")
