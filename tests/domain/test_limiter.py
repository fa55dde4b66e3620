"""Who goes on now, who waits, and whose turn is next."""

from functools import partial
from threading import Thread
from types import SimpleNamespace

import pytest

from domain import limiter
from domain.errors import RateLimited, ServiceUnavailable
from domain.limiter import Limiter, Owner
from tests.servers.guard import wait_for

PATIENCE_S = 20.0


class Queue:
    """A limiter, and who has gone on, in order."""

    def __init__(self, made: Limiter) -> None:
        self.limiter = made
        self.begun: list[Owner] = []

    def come(self, *owners: Owner) -> None:
        for owner in owners:
            if self.limiter.enter(owner, partial(self._go, owner)):
                self._go(owner)

    def _go(self, owner: Owner) -> None:
        self.begun.append(owner)

    def end(self, *owners: Owner) -> list[Owner]:
        """End what these have under way; return who has gone on for it."""
        self.begun = []
        for owner in owners:
            self.limiter.leave(owner)
        return self.begun


@pytest.fixture
def mixed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody is alone for as long as the test takes."""
    monkeypatch.setattr(limiter, "MIXED_S", 1_000.0)


def test_owners_take_turns_however_many_of_one_came_first() -> None:
    queue = Queue(Limiter(1, 1, places=100))
    queue.come(*"aaaaabbc")
    assert queue.begun == ["a"]
    order = [queue.end("a")[0]]
    while len(order) < 7:
        order += queue.end(order[-1])
    assert "".join(map(str, order)) == "abcabaa"


@pytest.mark.usefixtures("mixed")
def test_an_owner_has_its_share_while_others_come_and_all_when_it_is_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    queue = Queue(Limiter(8, 2, alone=8, places=100))
    queue.come("b")
    queue.end("b")
    queue.come(*"aaaaaaaa")
    assert queue.begun == ["a"] * 2
    queue.come("b")
    assert queue.begun == ["a", "a", "b"], "it found a free slot at once"
    monkeypatch.setattr(limiter, "MIXED_S", 0.0)
    queue.end("b")
    queue.come("c")
    assert queue.end("c") == ["a"] * 6, "nobody else is there any more"


@pytest.mark.usefixtures("mixed")
def test_who_waits_goes_on_when_he_comes_again_and_the_others_have_gone_idle(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    queue = Queue(Limiter(8, 2, alone=6, places=100))
    queue.come(*"baaaaa")
    assert queue.end("b") == []
    later_s = limiter.time.monotonic() + 2 * limiter.MIXED_S
    monkeypatch.setattr(limiter, "time", SimpleNamespace(monotonic=lambda: later_s))
    queue.come("a")
    assert queue.begun == ["a"] * 4


@pytest.mark.usefixtures("mixed")
def test_an_owner_is_alone_beside_what_we_do_ourselves() -> None:
    queue = Queue(Limiter(8, 2, alone=6, places=100))
    queue.come("a", None)
    queue.end(None)
    queue.come(*"aaaa")
    assert queue.begun == ["a"] * 4


def test_while_another_waits_an_owner_is_not_alone_though_nobody_comes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(limiter, "MIXED_S", 0.0)
    queue = Queue(Limiter(4, 1, alone=4, places=100))
    queue.come(*"aaaa")
    queue.come(*"bbaa")
    assert queue.end("a", "a", "a") == ["b"]
    assert queue.end("a") == ["a"], "its share is one"


def test_half_of_the_places_are_for_one_owner_and_all_for_nobody_more() -> None:
    queue = Queue(Limiter(1, 1, places=4))
    queue.come("a", "a", "a")
    with pytest.raises(RateLimited) as refused:
        queue.come("a")
    assert refused.value.retryable
    queue.come("b", "c")
    with pytest.raises(ServiceUnavailable):
        queue.come("d")
    queue.come(None)  # We ourselves.
    queue.end("a")
    with pytest.raises(ServiceUnavailable):
        queue.come("d")
    queue.end("a")
    queue.come("d")


def test_who_had_a_slot_gets_one_back_and_nobody_begins_until_there_is_one() -> None:
    queue = Queue(Limiter(1, 1, places=4))
    queue.come("a", "b", "c")
    assert queue.end("a") == ["b"]
    queue.limiter.reacquire("a")
    assert queue.end("b") == []
    assert queue.end("a") == ["c"]


def test_a_slot_is_waited_for_in_turn_and_not_for_ever() -> None:
    pictures = Limiter(8, 1, places=8, wait_s=0.01)
    with pictures.slot("a"):
        with pictures.slot("b"):
            pass
        with pytest.raises(RateLimited), pictures.slot("a"):
            pass
    with pictures.slot("a"):
        pass
    patient, done = Limiter(8, 1, places=8, wait_s=PATIENCE_S), list[str]()

    def draw() -> None:
        with patient.slot("a"):
            done.append("drawn")

    with patient.slot("a"):
        second = Thread(target=draw)
        second.start()
        assert wait_for(lambda: bool(patient._waiting), PATIENCE_S)  # noqa: SLF001  # The test looks in.
        assert not done
    second.join(PATIENCE_S)
    assert done == ["drawn"]


def test_without_places_the_share_is_refused_before_the_whole() -> None:
    downloads = Limiter(3, 2, beyond_share="yours", full="all")
    with downloads.slot("a"), downloads.slot("a"):
        with pytest.raises(RateLimited, match="yours"):
            downloads.require_share("a")
        with pytest.raises(RateLimited, match="yours"), downloads.slot("a"):
            pass
        downloads.require_share("b")
        full = pytest.raises(ServiceUnavailable, match="all")
        with downloads.slot("b"), full, downloads.slot("c"):
            pass
