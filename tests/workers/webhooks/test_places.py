"""However many endpoints hang, threads are free for those that answer."""

from uuid import UUID, uuid4

from workers.webhooks import PLACES, WebhookPlaces

THREADS = 96


def entered(places: WebhookPlaces, owner: UUID, endpoint: UUID, tries: int = 200) -> int:
    return sum(places.enter(owner, endpoint) for _ in range(tries))


def test_an_endpoint_has_four_places_while_there_is_room_then_one() -> None:
    places = WebhookPlaces(THREADS)
    taken = [entered(places, uuid4(), uuid4()) for _ in range(60)]
    assert taken[: THREADS // 4 // PLACES] == [PLACES] * 6
    assert {*taken[6:]} == {1}
    assert sum(taken) < THREADS


def test_an_endpoint_that_was_slow_has_one_and_all_of_them_half() -> None:
    places = WebhookPlaces(THREADS)
    slow = [uuid4() for _ in range(100)]
    for each in slow:
        places.note(each, is_slow=True)
    assert [entered(places, uuid4(), each) for each in slow] == [1] * 48 + [0] * 52
    assert entered(places, uuid4(), uuid4()) == 1
    places.note(slow[0], is_slow=False)
    places.leave(uuid4(), slow[0])
    assert not places.has(uuid4(), slow[60]) or entered(places, uuid4(), slow[60]) == 1


def test_an_organization_has_half_of_the_threads() -> None:
    places = WebhookPlaces(8)
    owner = uuid4()
    assert sum(entered(places, owner, uuid4()) for _ in range(10)) == 4
    assert entered(places, uuid4(), uuid4()) == 1


def test_places_come_back() -> None:
    places = WebhookPlaces(THREADS)
    owner, endpoint = uuid4(), uuid4()
    for _ in range(3):
        assert entered(places, owner, endpoint) == PLACES
        for _ in range(PLACES):
            places.leave(owner, endpoint)
        places.note(endpoint, is_slow=False)
