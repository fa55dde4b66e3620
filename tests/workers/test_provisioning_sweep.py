"""The sweep of links and plan changes: what is due, in which order, how often, and no more."""

from datetime import timedelta
from itertools import pairwise
from uuid import UUID

import pytest

from tests.workers.link_lab import Lab
from tests.workers.network_faults import FAULTS, arm
from tests.workers.queueing import Queue
from workers.sweep import LINKS_BACK_OFF_MAX, LINKS_BACKLOG_MAX, WORK_MAX, ProvisioningSweep


class Swept:
    """A sweep whose messages a test looks at."""

    def __init__(self, lab: Lab) -> None:
        self.lab = lab
        self.queue = Queue("provision", 0)
        process = lab.process
        self.sweep = ProvisioningSweep(process.views, process.unfinished, self.queue, lab.clock)

    def run(self, *, everything: bool = False, work_max: int = WORK_MAX) -> list[UUID]:
        self.lab.process.projector.catch_up()
        sent = self.sweep.run(everything=everything, work_max=work_max)
        taken = [link_id for (link_id,) in self.queue.taken()]
        assert sent == len(taken)
        return taken


@pytest.fixture
def swept(lab: Lab) -> Swept:
    return Swept(lab)


@pytest.mark.any_database
def test_a_request_that_nobody_works_on_is_asked_for_after_two_seconds(
    lab: Lab, swept: Swept
) -> None:
    link_id = lab.request()
    lab.clock.forward(seconds=1.9)
    assert swept.run() == []
    lab.clock.forward(seconds=0.1)
    assert swept.run() == [link_id]


def test_what_stays_undone_is_asked_for_ever_more_seldom(lab: Lab, swept: Swept) -> None:
    link_id = lab.request()
    lab.clock.forward(seconds=2)
    moments = []
    for second in range(56):
        if swept.run() == [link_id]:
            moments.append(second)
        lab.clock.forward(seconds=1)
    gaps = [after - before for before, after in pairwise(moments)]
    assert gaps == [2, 4, 8, 10, 10, 10, 10]


@pytest.mark.any_database
def test_what_has_moved_on_does_not_wait_as_what_it_was(lab: Lab, swept: Swept) -> None:
    arm(lab.network, "create_endpoint", FAULTS["killed before"])
    link = lab.create()
    for seconds in (5, 2, 4, 8):
        lab.clock.forward(seconds=seconds)
        assert swept.run() == [link.id]
    assert lab.work(link.id).failure is not None, "its time was over; now it is cleaned up"
    lab.clock.forward(seconds=1)
    assert swept.run() == [link.id], "not ten seconds after the last time"


def test_what_is_longest_overdue_comes_first_and_the_rest_at_the_next_tick(
    lab: Lab, swept: Swept
) -> None:
    asked = []
    for _ in range(7):
        asked.append(lab.request())
        lab.clock.forward(seconds=0.1)
    lab.clock.forward(seconds=2)
    assert [swept.run(work_max=3) for _ in range(4)] == [asked[:3], asked[3:6], asked[6:], []]


@pytest.mark.any_database
def test_work_that_never_ends_does_not_keep_others_from_their_turn(lab: Lab, swept: Swept) -> None:
    asked = [lab.request() for _ in range(9)]
    lab.clock.forward(seconds=2)
    for _ in range(5):
        while swept.run(work_max=3):
            lab.clock.forward(seconds=0.1)
        lab.clock.forward(minutes=1)  # Now all of them are due at once.
    turns: list[UUID] = []
    for _ in range(3):
        turns += swept.run(work_max=3)
        lab.clock.forward(seconds=1)
    assert sorted(turns) == sorted(asked)


@pytest.mark.any_database
def test_a_queue_with_a_backlog_is_not_filled_further(lab: Lab, swept: Swept) -> None:
    link_id = lab.request()
    lab.clock.forward(seconds=2)
    swept.queue.waiting = LINKS_BACKLOG_MAX + 1
    assert swept.run(everything=True) == []
    swept.queue.waiting = LINKS_BACKLOG_MAX
    assert swept.run() == [link_id]


def test_at_boot_everything_is_asked_for_whatever_its_moment(lab: Lab, swept: Swept) -> None:
    link_id = lab.request()
    assert swept.run() == []
    assert swept.run(everything=True) == [link_id]
    lab.clock.forward(days=-1)  # The clock was set back while nothing ran.
    assert Swept(lab).run(everything=True) == [link_id]


@pytest.mark.any_database
def test_a_clock_that_was_set_back_holds_nothing_up(lab: Lab, swept: Swept) -> None:
    first = lab.request()
    lab.clock.forward(hours=2)
    assert swept.run() == [first]
    lab.clock.forward(hours=-1)
    assert swept.run() == [first]
    lab.clock.forward(seconds=LINKS_BACK_OFF_MAX / timedelta(seconds=1))
    assert swept.run() == [first]


@pytest.mark.any_database
def test_work_that_keeps_waiting_hides_no_new_work(lab: Lab, swept: Swept) -> None:
    waiting = {lab.request() for _ in range(3)}
    lab.clock.forward(seconds=2)
    assert {*swept.run(work_max=3)} == waiting
    new = lab.request()
    lab.clock.forward(seconds=2)
    assert swept.run(work_max=1) == [new], "the others are due again too"
    assert {*swept.run(work_max=3)} == waiting
