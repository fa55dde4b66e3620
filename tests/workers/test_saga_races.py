"""Other processes may act, or die, between the steps of a link or plan change without harm."""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from functools import partial
from itertools import product
from typing import Any, ClassVar
from uuid import UUID

import pytest

from domain.errors import IncompleteNetworkAnswer, ProvisioningError
from domain.links.link import Stage
from domain.provider_errors import OutcomeUnknown, Unavailable
from tests.faulty_network import Killed
from tests.installation import Process, sqlite_only
from tests.workers.link_checks import check
from tests.workers.link_lab import Lab
from tests.workers.network_faults import FAULTS, arm
from tests.workers.places import Happening, Places, When, die
from tests.workers.together import together

pytestmark = pytest.mark.slow

PLACES_MAX = 60  # Far more than the reads of the longest way; bounds a test that never ends.
WAYS = ["done", "looked up", "refused"]
# Which way the network takes it changes what is committed, not how a database lets two commit.
ANY_WAY = [
    "done",
    *(pytest.param(each, marks=pytest.mark.any_database) for each in WAYS if each != "done"),
]
DEATH = "the end of the worker"
RIVALS = ["the waiter", "the waiter, late", "a worker", "a worker that dies", "a reader"]
# A worker's commit and a death show what a database makes of any rival's commit or of none.
# Who dies before a commit leaves what the commit before it has left.
ON_BOTH = [(DEATH, "after"), ("a worker", "before"), ("a worker", "after")]
WHENS: tuple[When, ...] = ("before", "after")


class Saga(ABC):
    """What a worker does step by step, while a request waits for it at most until a deadline."""

    calls: ClassVar[list[str]]
    make: ClassVar[str]  # The call that makes something, and the one that removes it again.
    undo: ClassVar[str]

    def __init__(self, lab: Lab) -> None:
        self.lab = lab

    @abstractmethod
    def begin(self, way: str = "done") -> UUID:
        """Ask for it; nobody works on it yet."""

    @abstractmethod
    def work(self, saga_id: UUID, process: Process | None = None) -> None:
        """Give its message to the worker of this life, or to that of another process."""

    @abstractmethod
    def expire(self, saga_id: UUID) -> None:
        """Fail it as the request does that has waited long enough, unless it is answered."""

    @abstractmethod
    def has_ended(self, saga_id: UUID) -> bool: ...

    @abstractmethod
    def failure(self, saga_id: UUID) -> str | None:
        """Return the code that it failed with."""

    def look(self, saga_id: UUID) -> None:
        """Read the link, which may append to it what the network shows."""
        del saga_id

    def end_without_the_worker(self, saga_id: UUID) -> None:
        """Let it fail and be cleaned up while its worker sleeps."""
        other = self.lab.other_process()  # It was there before time passed.
        self.lab.clock.forward(minutes=2)
        self.expire(saga_id)
        self.work(saga_id, other)
        assert self.has_ended(saga_id)

    def rival(self, saga_id: UUID, kind: str) -> Happening:
        """Return what somebody else does in the midst of a step."""
        if kind == DEATH:
            return die
        if kind == "a reader":
            return partial(self.look, saga_id)
        other = self.lab.other_process()

        def wait_no_longer() -> None:
            if kind == "the waiter, late":
                self.lab.clock.forward(seconds=15)
            self.expire(saga_id)

        def work() -> None:
            if kind == "a worker that dies":
                self.lab.network.after(self.make, Killed())
            try:
                self.work(saga_id, other)
            except Killed:
                return

        return work if kind.startswith("a worker") else wait_no_longer

    def at_each(self, places: Places, way: str) -> Iterator[tuple[UUID, int]]:
        """Yield a new one for each place of its way, until one has fewer."""
        for number in range(1, PLACES_MAX):
            self.lab.forget_faults()
            yield self.begin(way), number
            if places.is_waiting:
                assert number > 2
                return
        raise AssertionError


class Creation(Saga):
    """The creation of a link."""

    calls: ClassVar[list[str]] = [
        "available_esims",
        "lpa",
        "create_endpoint",
        "find_endpoint",
        "release_esim",
    ]
    make, undo = "create_endpoint", "remove_endpoint"
    plans: ClassVar[dict[str, str]] = {
        "done": "eu-1",
        "looked up": "sandbox-lost-reply",
        "refused": "sandbox-no-endpoint",
    }

    def begin(self, way: str = "done") -> UUID:
        return self.lab.request(self.lab.plan(self.plans[way]))

    def work(self, saga_id: UUID, process: Process | None = None) -> None:
        if process is None:
            self.lab.work(saga_id)
        else:
            process.provisioning.work(saga_id)

    def expire(self, saga_id: UUID) -> None:
        self.lab.expire(saga_id)

    def has_ended(self, saga_id: UUID) -> bool:
        return self.lab.link(saga_id).stage is Stage.ENDED

    def failure(self, saga_id: UUID) -> str | None:
        failed = self.lab.link(saga_id).failure
        return failed and failed.code


class Change(Saga):
    """A change of plans: the oldest one is taken off, two are added."""

    calls: ClassVar[list[str]] = ["remove_plan", "add_plan", "usage"]
    make, undo = "add_plan", "remove_plan"
    plans: ClassVar[dict[str, tuple[str, ...]]] = {
        "done": ("t3", "t4"),
        "looked up": ("sandbox-lost-reply", "t4"),
        "refused": ("t3", "sandbox-no-endpoint"),
        "only added": ("t3",),
    }

    def __init__(self, lab: Lab) -> None:
        super().__init__(lab)
        self.link_id = lab.create().id

    def begin(self, way: str = "only added") -> UUID:
        there = self.lab.link(self.link_id).current_activations
        oldest = [each.id for each in there[: 0 if way == "only added" else 1]]
        wanted = [self.lab.plan(each, "1.00") for each in self.plans[way]]
        return self.lab.request_change(self.link_id, oldest, wanted)

    def work(self, saga_id: UUID, process: Process | None = None) -> None:
        if process is None:
            self.lab.work_change(saga_id)
        else:
            process.plan_changes.work(saga_id)

    def expire(self, saga_id: UUID) -> None:
        self.lab.expire_change(saga_id)

    def has_ended(self, saga_id: UUID) -> bool:
        return self.lab.plan_change(saga_id).finished_at is not None

    def failure(self, saga_id: UUID) -> str | None:
        failed = self.lab.plan_change(saga_id).failure
        return failed and failed.code

    def look(self, saga_id: UUID) -> None:
        self.lab.see(self.lab.plan_change(saga_id).link_id)


SAGAS = [Creation, Change]


def table(kinds: list[str], whens: tuple[When, ...] = WHENS) -> list[Any]:
    """Return every rival, moment and way of each saga; a third of them is for `make test`.

    That third has each rival at each moment, on each way and in each saga. The others are for
    `make soak`: the simulation lets the same come together, and finds the bugs that are planted.
    """
    cells = product(enumerate(SAGAS), enumerate(kinds), enumerate(whens), enumerate(WAYS))
    found = []
    for (saga, made), (rival, kind), (moment, when), (way, chosen) in cells:
        marks = []
        is_on_both = (kind, when) in ON_BOTH and chosen == "done"
        if not is_on_both:
            marks.append(pytest.mark.any_database)
        if way != (saga + rival + moment) % len(WAYS) and not is_on_both:
            marks.append(pytest.mark.soak)
        name = f"{made.__name__}-{kind}-{when}-{chosen}"
        found.append(pytest.param(made, kind, when, chosen, marks=marks, id=name))
    return found


in_a_saga = partial(pytest.mark.parametrize, ("saga", "kind", "when", "way"), indirect=["saga"])


@pytest.fixture(params=SAGAS, ids=lambda each: each.__name__)
def saga(lab: Lab, request: pytest.FixtureRequest) -> Saga:
    made: Saga = request.param(lab)
    return made


@pytest.fixture
def creation(lab: Lab) -> Creation:
    return Creation(lab)


@pytest.fixture
def change(lab: Lab) -> Change:
    return Change(lab)


@in_a_saga(table([DEATH, *RIVALS]))
def test_somebody_else_or_the_end_may_come_between_any_two_commits(
    lab: Lab, saga: Saga, kind: str, when: When, way: str
) -> None:
    for saga_id, number in saga.at_each(lab.commits, way):
        lab.commits.at(number, when, saga.rival(saga_id, kind))
        saga.work(saga_id)
        lab.settle()
    check(lab)  # What went wrong at any place is still wrong.


@pytest.mark.parametrize("way", ANY_WAY)
def test_lives_that_all_end_after_their_first_commit_come_to_the_end_together(
    lab: Lab, saga: Saga, way: str
) -> None:
    saga_id = saga.begin(way)
    lab.commits.at_each("after", die)
    saga.work(saga_id)
    assert not saga.has_ended(saga_id)
    lab.settle()
    check(lab)


def test_a_kill_ends_a_life_and_not_the_thread_of_its_committer(lab: Lab) -> None:
    link_id, first = lab.request(), lab.process
    lab.commits.at(1, "after", die)  # The one with the charge.
    with pytest.raises(Killed):
        first.provisioning.work(link_id)
    assert lab.link(link_id).iccid is not None
    first.accounts.deposit(lab.organization_id, 1, "bank-2", first.cause())


@pytest.mark.soak  # Who comes between two reads comes before or after a commit as well, above.
@sqlite_only("commits decide who wins, and those are tried on both; the reads are many")
@in_a_saga(table(RIVALS, ("after",)))
def test_somebody_else_may_come_between_any_two_reads(
    lab: Lab, saga: Saga, kind: str, when: When, way: str
) -> None:
    for saga_id, number in saga.at_each(lab.reads, way):
        lab.reads.at(number, when, saga.rival(saga_id, kind))
        saga.work(saga_id)
        lab.reads.pause()
        lab.settle()
    check(lab)


@sqlite_only("who comes during a call has no transaction to meet")
@in_a_saga(table(RIVALS))
def test_somebody_else_may_come_during_any_call(
    lab: Lab, saga: Saga, kind: str, when: When, way: str
) -> None:
    for call in saga.calls:
        saga_id = saga.begin(way)
        happening = saga.rival(saga_id, kind)
        (lab.network.before if when == "before" else lab.network.after)(call, happening)
        saga.work(saga_id)
        lab.settle()
        lab.forget_faults()
    check(lab)


@pytest.mark.parametrize("way", ANY_WAY)
def test_workers_of_many_processes_that_begin_at_once_do_it_once(
    lab: Lab, saga: Saga, way: str
) -> None:
    workers = [lab.other_process() for _ in range(3)]
    for _ in range(3):
        saga_id = saga.begin(way)
        waiter = partial(saga.expire, saga_id)
        together(*[partial(saga.work, saga_id, worker) for worker in workers], waiter)
        lab.settle()
    check(lab)


def test_a_success_that_comes_after_the_deadline_is_undone(lab: Lab, saga: Saga) -> None:
    saga_id = saga.begin()
    lab.network.after(saga.make, lambda: saga.expire(saga_id))
    saga.work(saga_id)
    assert saga.failure(saga_id) == ProvisioningError.code
    lab.settle()
    assert (saga.has_ended(saga_id), lab.network.count(saga.undo)) == (True, 1)
    check(lab)


def test_what_is_done_or_has_failed_stays_so_whoever_comes_again(lab: Lab, saga: Saga) -> None:
    ids = []
    for way in ("done", "refused"):
        saga_id = saga.begin(way)
        saga.work(saga_id)
        lab.settle()
        ids.append(saga_id)
    head, calls = lab.process.log.head(), len(lab.network.calls)
    lab.clock.forward(seconds=15)
    for saga_id in ids:
        saga.work(saga_id)
        saga.expire(saga_id)
    assert (lab.process.log.head(), len(lab.network.calls)) == (head, calls)


def test_a_worker_that_is_held_up_after_its_intent_no_longer_calls(lab: Lab, saga: Saga) -> None:
    saga_id = saga.begin()
    lab.commits.at(1, "after", lambda: saga.end_without_the_worker(saga_id))  # The intent.
    saga.work(saga_id)
    assert (saga.has_ended(saga_id), lab.network.count(saga.make)) == (True, 0)
    check(lab)


def test_a_worker_that_wakes_up_when_all_is_over_does_nothing(lab: Lab, saga: Saga) -> None:
    saga_id = saga.begin()
    lab.network.before(saga.make, Killed())
    saga.work(saga_id)
    lab.clock.forward(seconds=15)
    lab.reads.at(1, "after", lambda: saga.end_without_the_worker(saga_id))
    saga.work(saga_id)
    assert saga.has_ended(saga_id)
    check(lab)


def test_a_call_that_is_held_up_until_all_is_over_is_undone_by_its_caller(
    lab: Lab, saga: Saga, caplog: pytest.LogCaptureFixture
) -> None:
    saga_id = saga.begin()
    lab.network.before(saga.make, lambda: saga.end_without_the_worker(saga_id))
    saga.work(saga_id)
    assert lab.network.count(saga.undo) == 1
    assert "had ended; it is removed" in caplog.text
    check(lab)


def test_what_another_worker_has_taken_over_is_made_once_and_left_there(
    lab: Lab, saga: Saga
) -> None:
    saga_id, other = saga.begin(), lab.other_process()
    lab.network.after(saga.make, lambda: saga.work(saga_id, other))
    saga.work(saga_id)
    assert saga.failure(saga_id) is None
    assert (lab.network.count(saga.make), lab.network.count(saga.undo)) == (1, 0)
    check(lab)


def test_a_worker_that_finds_no_esim_does_not_fail_the_link_of_one_that_did(
    lab: Lab, creation: Creation
) -> None:
    link_id = creation.begin()

    def be_overtaken() -> None:
        creation.rival(link_id, "a worker that dies")()
        raise Unavailable

    lab.network.before("available_esims", be_overtaken)
    assert lab.work(link_id).stage is Stage.ACTIVE
    assert lab.network.count("create_endpoint") == 1
    check(lab)


def test_a_loser_of_the_clean_up_leaves_the_next_holder_of_the_esim_alone(
    lab: Lab, creation: Creation
) -> None:
    link_id, other = creation.begin("refused"), lab.other_process()
    taken: list[tuple[str | None, UUID]] = []

    def overtake() -> None:
        other.provisioning.work(link_id)
        iccid = lab.link(link_id).iccid
        lab.only(iccid or "")
        taken.append((iccid, creation.begin()))
        other.provisioning.work(taken[0][1])

    lab.network.after("find_endpoint", overtake)
    assert lab.work(link_id).stage is Stage.ENDED
    [(iccid, next_id)] = taken
    holder = lab.link(next_id)
    assert (holder.iccid, holder.stage) == (iccid, Stage.ACTIVE)
    check(lab)


def test_the_fifth_creation_without_an_outcome_is_the_last(lab: Lab) -> None:
    lab.network.before("create_endpoint", *[OutcomeUnknown() for _ in range(20)])
    link_id = lab.request(deadline_s=300)
    lab.settle()
    link = lab.link(link_id)
    assert lab.network.count("create_endpoint") == link.attempts == 5
    assert link.failure is not None
    assert link.failure.timestamp < link.requested.deadline
    check(lab)


@pytest.mark.any_database
@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("way", WAYS)
def test_a_reader_of_the_link_costs_no_call_and_changes_no_outcome(
    lab: Lab, change: Change, way: str, when: When
) -> None:
    """Whatever the place, the failure that is told is the one that the network has told."""
    quiet = lab.work_change(change.begin(way))
    lab.settle()
    for change_id, number in change.at_each(lab.commits, way):
        lab.commits.at(number, when, change.rival(change_id, "a reader"))
        done = lab.work_change(change_id)
        assert lab.network.count("add_plan") == 2
        assert done.done == quiet.done
        assert change.failure(change_id) == (quiet.failure and IncompleteNetworkAnswer.code)
        assert done.finished_at is not None


def test_a_change_goes_on_while_the_link_is_suspended(lab: Lab, change: Change) -> None:
    change_id = change.begin("done")
    arm(lab.network, "remove_plan", FAULTS["killed after"])
    lab.network.before("add_plan", lambda: lab.switch(change.link_id, "suspended"))
    lab.work_change(change_id)
    lab.settle()
    assert change.failure(change_id) is None
    assert lab.link(change.link_id).status == "suspended"
    check(lab)
