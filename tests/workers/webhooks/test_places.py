"""However many endpoints hang, threads are free for those that answer."""

from contextlib import ExitStack
from uuid import UUID, uuid4

import pytest

from tests.installation import Process
from tests.workers.webhooks.lab import work_of
from workers.webhooks import SLOTS, WebhookWork

THREADS = 96


@pytest.fixture
def work(process: Process) -> WebhookWork:
    return work_of(process, process.webhook_sender, threads=THREADS)


def entered(work: WebhookWork, owner: UUID, endpoint: UUID, tries: int = 200) -> list[ExitStack]:
    return [place for _ in range(tries) if (place := work.slot(owner, endpoint)) is not None]


def test_an_endpoint_has_four_places_while_there_is_room_then_one(work: WebhookWork) -> None:
    places = [entered(work, uuid4(), uuid4()) for _ in range(60)]
    taken = [len(each) for each in places]
    assert taken[: THREADS // 4 // SLOTS] == [SLOTS] * 6
    assert {*taken[6:]} == {1}
    assert sum(taken) < THREADS
    for each in [place for its in places for place in its]:
        each.close()
    again = [entered(work, uuid4(), uuid4()) for _ in range(60)]
    assert [len(each) for each in again] == taken


def test_an_endpoint_that_was_slow_has_one_and_all_of_them_half(work: WebhookWork) -> None:
    slow = [uuid4() for _ in range(100)]
    for each in slow:
        work.remember(each, is_slow=True)
    taken = [entered(work, uuid4(), each) for each in slow]
    assert [len(each) for each in taken] == [1] * 48 + [0] * 52
    assert len(entered(work, uuid4(), uuid4())) == 1
    work.remember(slow[0], is_slow=False)
    taken[0][0].close()
    assert len(entered(work, uuid4(), slow[60])) == 1


def test_an_endpoint_that_has_become_slow_gets_no_other_place(work: WebhookWork) -> None:
    owner, endpoint = uuid4(), uuid4()
    places = entered(work, owner, endpoint, tries=2)
    work.remember(endpoint, is_slow=True)
    places[0].close()
    assert work.slot(owner, endpoint) is None
    places[1].close()
    assert len(entered(work, owner, endpoint)) == 1


def test_an_organization_has_half_of_the_threads(process: Process) -> None:
    work, owner = work_of(process, process.webhook_sender, threads=8), uuid4()
    places = [entered(work, owner, uuid4()) for _ in range(10)]
    assert sum(map(len, places)) == 4
    assert len(entered(work, uuid4(), uuid4())) == 1
