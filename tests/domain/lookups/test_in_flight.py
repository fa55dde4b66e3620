"""The bound on lookups under way holds per organization, and a free place is taken at once."""

import time
from threading import Event, Thread
from uuid import uuid4

import pytest

from domain.errors import RateLimited
from domain.lookups import in_flight
from domain.lookups.in_flight import InFlight
from tests.installation import PATIENCE_S, wait_until

SOON_S = PATIENCE_S / 2  # Without a bound a caller would wait for PATIENCE_S.


def test_as_many_as_the_limit_enter_and_the_next_one_is_refused() -> None:
    bound, organization_id = InFlight(limit=2, wait_s=0.01), uuid4()
    with bound.enter(organization_id), bound.enter(organization_id):
        with pytest.raises(RateLimited), bound.enter(organization_id):
            pytest.fail("a third one entered")
        with bound.enter(uuid4()):
            pass
    with bound.enter(organization_id), bound.enter(organization_id):
        pass


def test_an_error_inside_gives_the_place_back() -> None:
    bound, organization_id = InFlight(limit=1, wait_s=0.01), uuid4()
    for _ in range(3):
        with pytest.raises(KeyError), bound.enter(organization_id):
            raise KeyError


def test_beyond_those_that_may_wait_one_waits_only_while_the_provider_is_quick(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(in_flight, "SOON_S", 0.05)
    bound, slow, other = InFlight(limit=1, waiting_max=1, wait_s=PATIENCE_S), uuid4(), uuid4()
    running = Holder(bound, slow)
    assert running.entered.wait(PATIENCE_S)
    waiting = Holder(bound, slow)
    wait_until(lambda: bound._waiting[slow] == 1)  # noqa: SLF001  # Before the next one comes.
    for _ in range(2):  # The first one waits for as long as the provider may be quick.
        began = time.monotonic()
        with pytest.raises(RateLimited), bound.enter(slow):
            pytest.fail("it entered")
        assert time.monotonic() - began < SOON_S
    with bound.enter(other):
        pass
    for each in (running, waiting):
        each.leave()
    assert waiting.entered.is_set()


class Holder:
    """Holds a place of an organization in a thread of its own until told to leave."""

    def __init__(self, bound: InFlight, organization_id: object) -> None:
        self.entered, self._leave = Event(), Event()
        self._thread = Thread(target=self._hold, args=(bound, organization_id))
        self._thread.start()

    def _hold(self, bound: InFlight, organization_id: object) -> None:
        with bound.enter(organization_id):  # type: ignore[arg-type]  # an id
            self.entered.set()
            self._leave.wait(PATIENCE_S)

    def leave(self) -> None:
        self._leave.set()
        self._thread.join(PATIENCE_S)


def test_a_free_place_goes_at_once_to_whoever_waits_for_it() -> None:
    bound, first, second = InFlight(limit=1, wait_s=2 * SOON_S), uuid4(), uuid4()
    holding = [Holder(bound, organization_id) for organization_id in (first, second)]
    wait_until(lambda: all(each.entered.is_set() for each in holding))
    waiting = []
    for count, organization_id in enumerate((first, second), start=1):
        waiting.append(Holder(bound, organization_id))
        wait_until(lambda waiters=count: len(bound._condition._waiters) == waiters)  # type: ignore[attr-defined, misc]  # noqa: SLF001  # Their order is the point.
    freed = time.monotonic()
    holding[1].leave()
    came = waiting[1].entered.wait(SOON_S)
    took_s = time.monotonic() - freed
    for each in (holding[0], *waiting):
        each.leave()
    assert came, f"nobody was woken for {took_s:.1f} s"
