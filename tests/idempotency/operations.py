"""The operations that take an Idempotency-Key, as commands: one adapter for each."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from typing import Any, ClassVar, NamedTuple
from uuid import UUID, uuid4

import pytest

from domain.errors import IncompleteNetworkAnswer, NumberLookupUnavailable, ProvisioningError
from domain.links.buying import attempt_id
from domain.links.link import Link
from domain.links.network import NoEndpoint
from domain.links.plan_change import PlanChange
from domain.lookups import single as single_lookup
from domain.lookups.bulk_job import bulk_job_id
from domain.lookups.single import number_lookup_id
from domain.provider_errors import Unavailable
from tests.domain.buying import Buyer, Gate
from tests.installation import CountingProvider, Installation, Process, numbers

KEY = "key-1"
SHORT_S = 0.05

Trouble = tuple[Exception, type[Exception]]  # What happens, and what the caller is told.


class Told(NamedTuple):
    """An outcome: the stream that holds it, what the caller gets of it, and whether again."""

    id: UUID
    content: object
    replayed: bool

    @property
    def again(self) -> "Told":
        """What a second request with the key has to get."""
        return self._replace(replayed=True)


class Operation(ABC):
    """One operation of one organization. Body 0 is the request, the `bodies` after it are others.

    `process` and `other` are two processes of the same installation.
    """

    environment: ClassVar[Mapping[str, str]] = {}
    cost_micros: ClassVar[int]
    event: ClassVar[str]  # The topic of what the first request appends.
    bodies: ClassVar[int]
    troubles: ClassVar[Sequence[Trouble]] = ()  # Each keeps nothing of a request.

    def __init__(
        self, installation: Installation, amount: str = "10.00", *, free: bool = False
    ) -> None:
        self.provider = CountingProvider()
        self.buyer = Buyer(installation, amount, provider=self.provider)
        self.process, self.other = self.buyer.process, self.buyer.open()
        self.organization_id = self.buyer.organization_id
        self.cost_micros = 0 if free else type(self).cost_micros  # type: ignore[misc]  # Its own.
        self._threads = ThreadPoolExecutor(4)

    def close(self) -> None:
        self._threads.shutdown()
        self.buyer.close()

    @abstractmethod
    def stream(self, key: str = KEY, attempt: int = 1) -> UUID:
        """Return the stream of an attempt with a key."""

    @abstractmethod
    def _run(self, key: str, body: int, process: Process) -> Told: ...

    @property
    @abstractmethod
    def asked(self) -> int:
        """How often the provider or the network was asked to do it."""

    @abstractmethod
    def meet(self, *happenings: Exception | Callable[[], object]) -> None:
        """Let each of the next calls of the provider or network meet one of these."""

    def ask(self, key: str = KEY, body: int = 0, process: Process | None = None) -> Told:
        return self._run(key, body, process or self.process)

    def ask_later(self, body: int = 0, process: Process | None = None) -> "Future[Told]":
        """Let a thread ask."""
        return self._threads.submit(self.ask, KEY, body, process)

    def under_way(self, error: Exception | None = None) -> "tuple[Future[Told], Gate]":
        """Begin a request that stands before a gate; behind it, it may meet an error."""
        gate = Gate(error)
        self.meet(gate)
        first = self.ask_later()
        gate.wait()
        return first, gate

    def hasty(self, patch: pytest.MonkeyPatch) -> Process:
        """Return a process whose requests hardly wait for others."""
        del patch
        return self.buyer.open(deadline_s=SHORT_S)

    def until_twins_wait(self, count: int, process: Process) -> None:
        """Wait until so many twins wait in a process, where they can be counted."""
        del count, process

    def spoil(self) -> None:
        """Take all the money, and whatever else a new request would need."""
        if self.buyer.balance_micros:
            self.buyer.spend(self.buyer.balance_micros)

    @property
    def made(self) -> int:
        """How many outcomes the log has, whichever the key."""
        return self.buyer.events()[self.event]

    def check(self) -> None:
        self.buyer.check()


class LocalLookup(Operation):
    """A lookup whose provider is in this process: no lease, the log alone decides."""

    environment: ClassVar[Mapping[str, str]] = {"SANDBOX": "false"}
    cost_micros = 5_000
    event = "number_lookup.answered"
    bodies = 8
    troubles = ((Unavailable("down"), NumberLookupUnavailable), (KeyError("a bug"), KeyError))

    def __init__(self, installation: Installation, amount: str = "10.00", **more: Any) -> None:
        super().__init__(installation, amount, **more)
        if type(self) is LocalLookup:
            with self.process.stores.writing() as connection:
                connection.exec_driver_sql("DROP TABLE IF EXISTS leases")  # Any use of one fails.

    def stream(self, key: str = KEY, attempt: int = 1) -> UUID:  # noqa: ARG002  # It has one attempt.
        return number_lookup_id(self.organization_id, key)

    def _run(self, key: str, body: int, process: Process) -> Told:
        number = numbers(self.bodies)[body]
        found = process.look_up(self.organization_id, number, key, self.cost_micros)
        assert found.facts.phone_number == number
        return Told(found.lookup.id, (found.facts, found.lookup.answer), found.replayed)

    @property
    def asked(self) -> int:
        return len(self.provider.asked)

    def meet(self, *happenings: Exception | Callable[[], object]) -> None:
        for call, happening in enumerate(happenings, start=self.asked + 1):
            self.provider.on_call(call, _happens(happening))


class LeasedLookup(LocalLookup):
    """A lookup that may be slow: a lease makes a twin wait instead of asking too."""

    environment: ClassVar[Mapping[str, str]] = {"SANDBOX": "true"}

    def hasty(self, patch: pytest.MonkeyPatch) -> Process:
        patch.setattr(single_lookup, "WAIT_S", SHORT_S)
        return self.other


class Job(Operation):
    """A bulk job, which is made and paid in one commit."""

    cost_micros = 15_000
    event = "bulk_job.created"
    bodies = 5
    asked = 0  # Its numbers are looked up later.

    def stream(self, key: str = KEY, attempt: int = 1) -> UUID:  # noqa: ARG002  # It has one attempt.
        return bulk_job_id(self.organization_id, key)

    def _run(self, key: str, body: int, process: Process) -> Told:
        wanted = numbers(3)
        others = [wanted, wanted[:2], [*wanted, *numbers(1, 9)], wanted[::-1], numbers(3, 9)]
        asked = self.organization_id, others[body], key, self.cost_micros // 3
        job, replayed = process.ask_for_job(*asked)
        return Told(job.id, None, replayed)

    def meet(self, *happenings: Exception | Callable[[], object]) -> None:
        assert not happenings, "it calls nobody"


class _Network(Operation):
    """Work of the workers at the network, while the request waits."""

    call: ClassVar[str]

    def __init__(
        self, installation: Installation, amount: str = "10.00", *, free: bool = False
    ) -> None:
        super().__init__(installation, amount, free=free)
        self.workers = self.buyer.hire()
        self.plans = [self.buyer.sell(each, "0.00" if free else "4.00") for each in ("EU", "Asia")]

    @property
    def asked(self) -> int:
        return self.buyer.network.count(self.call)

    def meet(self, *happenings: Exception | Callable[[], object]) -> None:
        self.buyer.network.before(self.call, *happenings)

    def until_twins_wait(self, count: int, process: Process) -> None:
        self.buyer.until_waiting(count, process)

    def spoil(self) -> None:
        super().spoil()
        for plan_id in self.plans:
            self.buyer.disable(plan_id)
        for process in (self.process, self.other):
            process.provisioning_rules = replace(process.provisioning_rules, base_plan="")


class Creation(_Network):
    """The creation of a link."""

    cost_micros = 4_000_000
    event = "link.requested"
    call = "create_endpoint"
    bodies = 5
    troubles = (
        (NoEndpoint("no id"), IncompleteNetworkAnswer),
        (Unavailable("down"), ProvisioningError),
    )

    def stream(self, key: str = KEY, attempt: int = 1) -> UUID:
        return attempt_id(Link, self.organization_id, key, attempt)

    def _run(self, key: str, body: int, process: Process) -> Told:
        europe, asia = self.plans
        bodies = [(europe, "car 7"), (asia, "car 7"), (europe, "car 8"), (europe, None)]
        plan_id, name = [*bodies, (uuid4(), "car 7")][body]
        link, replayed = self.buyer.create(plan_id, key, name, process)
        return Told(link.id, link, replayed)


class _Change(_Network):
    """A change of the plans of a link that has one; its neighbour has one too."""

    event = "plan_change.requested"
    call = "add_plan"
    link: Link

    def __init__(self, installation: Installation, amount: str = "10.00", **more: Any) -> None:
        super().__init__(installation, amount, **more)
        self.link, self.neighbour = self.buyer.own("Trial"), self.buyer.own("Oceania")

    @abstractmethod
    def wishes(self) -> Sequence[tuple[Link, Sequence[UUID], Sequence[UUID]]]:
        """Return the bodies: the link, what to remove, and what to add."""

    @property
    def bodies(self) -> int:  # type: ignore[override]  # As many as there are wishes.
        return len(self.wishes())

    def stream(self, key: str = KEY, attempt: int = 1) -> UUID:
        return attempt_id(PlanChange, self.organization_id, key, attempt)

    def _run(self, key: str, body: int, process: Process) -> Told:
        link, remove, add = self.wishes()[body]
        change, replayed = self.buyer.change(link.id, remove, add, key, process)
        return Told(change.id, change, replayed)


class TopUp(_Change):
    """A plan added to a link."""

    cost_micros = 4_000_000
    troubles = Creation.troubles

    def wishes(self) -> Sequence[tuple[Link, Sequence[UUID], Sequence[UUID]]]:
        europe, asia = self.plans
        link, other = self.link, self.neighbour
        adds = [[europe], [asia], [europe, asia]]
        return [(link, [], add) for add in adds] + [(other, [], [europe])]


class Swap(_Change):
    """One plan removed and two added, in one request."""

    cost_micros = 8_000_000

    def wishes(self) -> Sequence[tuple[Link, Sequence[UUID], Sequence[UUID]]]:
        [old], (europe, asia), link = self.link.activations, self.plans, self.link
        wished = [([old], [europe, asia]), ([old], [asia, europe]), ([old], [europe]), ([old], [])]
        others = [(link, remove, add) for remove, add in [*wished, ([], [europe, asia])]]
        return [*others, (self.neighbour, [old], [europe, asia])]


def _happens(happening: Exception | Callable[[], object]) -> Callable[[], object]:
    if not isinstance(happening, Exception):
        return happening

    def fail() -> None:
        raise happening

    return fail


EVERY: Sequence[type[Operation]] = (LocalLookup, LeasedLookup, Job, Creation, TopUp, Swap)
AT_THE_NETWORK: Sequence[type[Operation]] = (Creation, TopUp, Swap)
FREED_BY_TROUBLE: Sequence[type[Operation]] = tuple(each for each in EVERY if each.troubles)
AWAITED: Sequence[type[Operation]] = (LeasedLookup, *AT_THE_NETWORK)
