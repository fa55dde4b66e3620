"""Other processes may act, or die, between the steps of a link or plan change without harm."""

from abc import ABC, abstractmethod
from contextlib import suppress
from functools import partial
from typing import ClassVar
from uuid import UUID

import pytest

from domain.errors import IncompleteNetworkAnswer, ProvisioningError
from domain.links.link import Link, Stage
from domain.links.plan_change import PlanChange
from domain.provider_errors import OutcomeUnknown, Unavailable
from tests.domain.asking import together
from tests.faulty_network import Killed
from tests.installation import Process
from tests.workers.link_lab import Lab
from tests.workers.places import When

pytestmark = pytest.mark.slow

PLACES_MAX = 60  # Far more than the reads of the longest way; bounds a test that never ends.


class Saga(ABC):
    """What a worker does step by step, while a request waits for it at most until a deadline."""

    make: ClassVar[str]  # The calls that make something, remove it again, and show it.
    undo: ClassVar[str]
    look_up: ClassVar[str]

    def __init__(self, lab: Lab) -> None:
        self.lab = lab

    @abstractmethod
    def begin(self) -> UUID:
        """Ask for it; nobody works on it yet."""

    @abstractmethod
    def work(self, saga_id: UUID, process: Process | None = None) -> None:
        """Give its message to the worker of this life, or to that of another process."""

    @abstractmethod
    def state(self, saga_id: UUID) -> Link | PlanChange: ...

    def expire(self, saga_id: UUID) -> None:
        """Fail it as the request does that has waited long enough, unless it is answered."""
        self.lab.process.failing.expire(self.state(saga_id))

    def has_ended(self, saga_id: UUID) -> bool:
        return saga_id not in {each.id for each in self.lab.unfinished()}

    def failure(self, saga_id: UUID) -> str | None:
        failed = self.state(saga_id).failure
        return failed and failed.code

    def end_without_the_worker(self, saga_id: UUID) -> None:
        """Let it fail and be cleaned up while its worker sleeps."""
        other = self.lab.other_process()  # It was there before time passed.
        self.lab.clock.forward(minutes=2)
        self.expire(saga_id)
        self.work(saga_id, other)
        assert self.has_ended(saga_id)

    def die_as_another_worker(self, saga_id: UUID) -> None:
        """Let a worker of another process make it, and die before it can say so."""
        self.lab.network.after(self.make, Killed())
        with suppress(Killed):
            self.work(saga_id, self.lab.other_process())


class Creation(Saga):
    """The creation of a link."""

    make, undo, look_up = "create_endpoint", "remove_endpoint", "find_endpoint"

    def begin(self, plan: str = "eu-1") -> UUID:
        return self.lab.request(self.lab.plan(plan))

    def work(self, saga_id: UUID, process: Process | None = None) -> None:
        (self.lab.work if process is None else process.provisioning.work)(saga_id)

    def state(self, saga_id: UUID) -> Link:
        return self.lab.link(saga_id)


class Change(Saga):
    """A change of plans: one is added, unless a test says otherwise."""

    make, undo, look_up = "add_plan", "remove_plan", "usage"

    def __init__(self, lab: Lab) -> None:
        super().__init__(lab)
        self.link_id = lab.create().id

    def begin(self, *plans: str, removed: int = 0) -> UUID:
        oldest = self.lab.link(self.link_id).current_activations[:removed]
        wanted = [self.lab.plan(each, "1.00") for each in plans or ["t3"]]
        return self.lab.request_change(self.link_id, [each.id for each in oldest], wanted)

    def work(self, saga_id: UUID, process: Process | None = None) -> None:
        (self.lab.work_change if process is None else process.plan_changes.work)(saga_id)

    def state(self, saga_id: UUID) -> PlanChange:
        return self.lab.plan_change(saga_id)

    def look(self, saga_id: UUID) -> None:
        """Read the link, which may append to it what the network shows."""
        self.lab.see(self.lab.plan_change(saga_id).link_id)


SAGAS = [Creation, Change]


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


@pytest.mark.each_database
def test_workers_of_many_processes_that_begin_at_once_do_it_once(lab: Lab, saga: Saga) -> None:
    workers = [lab.other_process() for _ in range(3)]
    for _ in range(3):
        saga_id = saga.begin()
        waiter = partial(saga.expire, saga_id)
        together(*[partial(saga.work, saga_id, worker) for worker in workers], waiter)
        lab.settle()


def test_a_worker_that_is_held_up_after_its_intent_no_longer_calls(lab: Lab, saga: Saga) -> None:
    saga_id = saga.begin()
    lab.commits.at(1, "after", lambda: saga.end_without_the_worker(saga_id))  # The intent.
    saga.work(saga_id)
    assert (saga.has_ended(saga_id), lab.network.count(saga.make)) == (True, 0)


def test_a_worker_that_comes_late_to_its_call_states_another_intent(lab: Lab, saga: Saga) -> None:
    saga_id = saga.begin()
    lab.commits.at(1, "after", lambda: lab.clock.forward(seconds=5))
    saga.work(saga_id)
    lab.settle()
    assert (saga.failure(saga_id), lab.network.count(saga.make)) == (None, 1)


def test_no_intent_lasts_longer_than_its_request_waits_and_then_it_is_given_up_in_doubt(
    lab: Lab, saga: Saga
) -> None:
    saga_id = saga.begin()
    lab.clock.forward(seconds=12)
    lab.network.after(saga.make, Killed())
    saga.work(saga_id)
    intent, deadline = saga.state(saga_id).intent, saga.state(saga_id).requested.deadline
    assert intent is not None
    assert intent.until == deadline == lab.clock.forward(seconds=3)
    saga.work(saga_id)
    lab.settle()
    assert (saga.failure(saga_id), lab.network.count(saga.undo)) == (ProvisioningError.code, 1)


def test_a_worker_that_wakes_up_when_all_is_over_does_nothing(lab: Lab, saga: Saga) -> None:
    saga_id = saga.begin()
    lab.network.before(saga.make, Killed())
    saga.work(saga_id)
    lab.clock.forward(seconds=15)
    lab.reads.at(1, "after", lambda: saga.end_without_the_worker(saga_id))
    saga.work(saga_id)
    assert saga.has_ended(saga_id)


def test_what_comes_while_a_worker_looks_is_undone(lab: Lab, saga: Saga) -> None:
    """The look shows nothing; the network's time is over when the worker has its answer."""
    saga_id = saga.begin()
    lab.late.later(saga.make, 17)
    lab.network.before(saga.look_up, Unavailable("down"))
    saga.work(saga_id)
    lab.clock.forward(seconds=10)
    saga.expire(saga_id)
    lab.network.after(saga.look_up, lambda: lab.clock.forward(minutes=1))
    saga.work(saga_id)
    assert (saga.has_ended(saga_id), lab.network.count("release_esim")) == (False, 0)
    lab.settle()
    assert lab.network.count(saga.undo) == 1


def test_a_call_that_is_held_up_until_all_is_over_is_undone_by_its_caller(
    lab: Lab, saga: Saga, caplog: pytest.LogCaptureFixture
) -> None:
    saga_id = saga.begin()
    lab.network.before(saga.make, lambda: saga.end_without_the_worker(saga_id))
    saga.work(saga_id)
    assert lab.network.count(saga.undo) == 1
    assert "had ended; it is removed" in caplog.text


def test_what_its_caller_cannot_take_off_any_more_is_left_over(lab: Lab, change: Change) -> None:
    change_id = change.begin()
    lab.network.before(change.make, lambda: change.end_without_the_worker(change_id))
    lab.network.before(change.undo, Unavailable("down"))
    change.work(change_id)
    assert len(lab.link(change.link_id).left_over) == lab.network.count(change.undo) == 1
    lab.is_odd = True  # A plan is left over.


def test_what_another_worker_has_taken_over_is_made_once_and_left_there(
    lab: Lab, saga: Saga
) -> None:
    saga_id, other = saga.begin(), lab.other_process()
    lab.network.after(saga.make, lambda: saga.work(saga_id, other))
    saga.work(saga_id)
    assert saga.failure(saga_id) is None
    assert (lab.network.count(saga.make), lab.network.count(saga.undo)) == (1, 0)


def test_a_worker_that_finds_no_esim_does_not_fail_the_link_of_one_that_did(
    lab: Lab, creation: Creation
) -> None:
    link_id = creation.begin()

    def be_overtaken() -> None:
        creation.die_as_another_worker(link_id)
        raise Unavailable

    lab.network.before("available_esims", be_overtaken)
    assert lab.work(link_id).stage is Stage.ACTIVE
    assert lab.network.count("create_endpoint") == 1


def test_a_loser_of_the_clean_up_leaves_the_next_holder_of_the_esim_alone(
    lab: Lab, creation: Creation
) -> None:
    link_id, other = creation.begin("sandbox-no-endpoint"), lab.other_process()
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


def test_the_fifth_creation_without_an_outcome_is_the_last(lab: Lab) -> None:
    lab.network.before("create_endpoint", *[OutcomeUnknown() for _ in range(20)])
    link_id = lab.request(deadline_s=300)
    lab.settle()
    link = lab.link(link_id)
    assert lab.network.count("create_endpoint") == link.attempts == 5
    assert link.failure is not None
    assert link.failure.timestamp < link.requested.deadline


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_reader_of_the_link_costs_no_call_and_changes_no_outcome(
    lab: Lab, change: Change, when: When
) -> None:
    """Whatever the place, the failure that is told is the one that the network has told."""
    refused = partial(change.begin, "t3", "sandbox-no-endpoint", removed=1)
    quiet = lab.work_change(refused())
    lab.settle()
    number = 0
    while not lab.commits.is_waiting:  # Until there is no such place any more.
        number += 1
        assert number < PLACES_MAX
        lab.forget_faults()
        change_id = refused()
        lab.commits.at(number, when, partial(change.look, change_id))
        done = lab.work_change(change_id)
        assert lab.network.count("add_plan") == 2
        assert done.done == quiet.done
        assert change.failure(change_id) == IncompleteNetworkAnswer.code
        assert done.finished_at is not None
    assert number > 3
