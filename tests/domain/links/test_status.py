"""Suspending and reactivating: what is told to the partner is what the network has."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from domain.errors import ProvisioningError, ServiceUnavailable
from domain.links import driver
from domain.links.driver import CALL_S, WITHIN_S
from domain.links.link import Link
from domain.links.network import EsimNetwork, LinkStatus
from domain.links.requested import Target
from domain.links.waiting import limiters_of
from domain.provider_errors import OutcomeUnknown, Unavailable
from tests.domain.asking import all_at_once
from tests.domain.buying import Buyer, Gate, Patience
from tests.domain.conftest import clocked_buyer
from tests.faulty_network import Killed
from tests.installation import PATIENCE_S

TARGETS: list[Target] = ["suspended", "active"]
SHORT_S = 0.05


buyer = clocked_buyer


@pytest.fixture
def short_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let nobody wait long for the intent of another."""
    monkeypatch.setattr(driver, "CALL_S", SHORT_S)


@pytest.fixture
def link(buyer: Buyer) -> Link:
    return buyer.own()


def settle(buyer: Buyer) -> None:
    """Let the time pass after which the network can do nothing more of what it was told."""
    settled_s = CALL_S + buyer.network.settles_after.total_seconds()
    buyer.clock.forward(seconds=settled_s)  # type: ignore[attr-defined]  # it can be moved


def expect(buyer: Buyer, link: Link, status: LinkStatus) -> None:
    """Expect that log and network agree on a status and that nothing is under way."""
    current = buyer.link(link.id)
    assert (current.status, buyer.at_network(link.id)) == (status, status)
    assert current.open_call is None


@pytest.mark.parametrize("target", TARGETS)
def test_an_inactive_link_can_be_either(buyer: Buyer, link: Link, target: Target) -> None:
    buyer.simulator.play(link.endpoint_id, lambda it, now: it.stopped("inactive", now))
    assert buyer.switch(link.id, target).status == target
    counted = buyer.events()
    assert counted["link.status_seen"] == counted["link.status_requested"] == 1
    expect(buyer, link, target)


@pytest.mark.parametrize("target", TARGETS)
def test_a_network_that_cannot_be_read_is_told_all_the_same(
    buyer: Buyer, link: Link, target: Target
) -> None:
    buyer.switch(link.id, "active" if target == "suspended" else "suspended")
    buyer.network.before("usage", Unavailable("down"))
    assert buyer.switch(link.id, target).status == target
    expect(buyer, link, target)


@pytest.mark.usefixtures("short_calls")
@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("target", TARGETS)
def test_what_a_dead_process_left_open_is_taken_over_once_its_time_is_over(
    buyer: Buyer, link: Link, when: str, target: Target
) -> None:
    happens = buyer.network.before if when == "before" else buyer.network.after
    happens("suspend", Killed())
    with pytest.raises(Killed):
        buyer.switch(link.id, "suspended")
    settle(buyer)
    assert buyer.switch(link.id, target).status == target
    expect(buyer, link, target)


@pytest.mark.usefixtures("short_calls")
def test_a_reactivation_that_fails_is_not_told_as_done(buyer: Buyer, link: Link) -> None:
    """The log still has it as active, because whoever suspended it died before saying so."""
    buyer.network.after("suspend", Killed())
    with pytest.raises(Killed):
        buyer.switch(link.id, "suspended")
    assert (buyer.link(link.id).status, buyer.at_network(link.id)) == ("active", "suspended")
    buyer.time.forward(seconds=SHORT_S)
    buyer.network.before("resume", Unavailable("down"))
    with pytest.raises(ProvisioningError):
        buyer.switch(link.id, "active")
    expect(buyer, link, "suspended")


def test_a_slow_request_does_not_close_the_intent_of_the_one_after_it(
    buyer: Buyer, link: Link, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It comes back after its time-out, when another request has begun to undo it."""
    slow, next_one = Gate(), Gate()
    buyer.network.after("suspend", slow)
    first = buyer.switch_later(link.id, "suspended")
    slow.wait()
    buyer.time.forward(seconds=CALL_S)
    monkeypatch.setattr(driver, "CALL_S", SHORT_S)
    buyer.network.before("resume", next_one)
    second = buyer.switch_later(link.id, "active")
    next_one.wait()
    buyer.time.forward(seconds=0.001)  # Otherwise both write the same bytes.
    slow.open()
    first.exception(PATIENCE_S)
    assert getattr(buyer.link(link.id).open_call, "status", None) == "active"
    next_one.open()
    assert second.result(PATIENCE_S).status == "active"
    expect(buyer, link, "active")


class Slow:
    """A network each of whose calls takes all the time that it is given."""

    def __init__(self, inner: EsimNetwork, patience: Patience) -> None:
        self._inner, self._patience = inner, patience

    def __getattr__(self, call: str) -> Any:
        reached = getattr(self._inner, call)
        if not callable(reached):
            return reached

        def called(*args: Any, timeout_s: float) -> Any:
            answer = reached(*args, timeout_s=timeout_s)
            self._patience.ahead_s += timeout_s
            return answer

        return called


@pytest.mark.parametrize(("races", "told"), [(0, 1), (2, 0), (3, 0)])
def test_a_request_ends_in_its_time_though_each_call_takes_all_of_its_own(
    buyer: Buyer, link: Link, patience: Patience, races: int, told: int
) -> None:
    buyer.network.inner = Slow(buyer.network.inner, patience)  # type: ignore[assignment]  # It has all calls.

    def be_faster() -> None:
        buyer.time.forward(seconds=0.001)
        buyer.see(link.id)

    buyer.network.after("usage", *[be_faster] * races)
    buyer.network.before("suspend", OutcomeUnknown("lost"))
    with pytest.raises(ProvisioningError):
        buyer.switch(link.id, "suspended")
    assert patience.ahead_s <= WITHIN_S
    assert buyer.network.count("suspend") == told


def race(buyer: Buyer, link: Link, target: Callable[[int], Target]) -> list[Link | Exception]:
    processes = (buyer.process, buyer.open())
    return all_at_once(8, lambda each: buyer.switch(link.id, target(each), processes[each % 2]))


@pytest.mark.each_database
@pytest.mark.usefixtures("long_calls")
def test_those_who_race_for_one_status_tell_the_network_once(buyer: Buyer, link: Link) -> None:
    outcomes = race(buyer, link, lambda _: "suspended")
    assert [each.status for each in outcomes] == ["suspended"] * 8  # type: ignore[union-attr]  # all links
    assert buyer.events()["link.suspended"] == 1
    expect(buyer, link, "suspended")


@pytest.mark.usefixtures("long_calls")
def test_those_who_race_for_both_leave_log_and_network_of_one_mind(
    buyer: Buyer, link: Link
) -> None:
    outcomes = race(buyer, link, lambda each: TARGETS[each // 2 % 2])
    assert all(isinstance(each, Link) for each in outcomes), outcomes
    expect(buyer, link, buyer.at_network(link.id))


def test_what_others_note_meanwhile_does_not_disturb(buyer: Buyer, link: Link) -> None:
    def note() -> None:
        current = buyer.link(link.id)
        installed_at = buyer.clock() - timedelta(days=1)
        current.record_seen("active", installed_at, None, buyer.process.cause())
        buyer.process.log.append(current)

    buyer.network.before("suspend", note)
    assert buyer.switch(link.id, "suspended").installed_at is not None
    expect(buyer, link, "suspended")


def test_a_request_that_finds_no_place_asks_nobody(buyer: Buyer, link: Link) -> None:
    full = buyer.open()
    full.waiting = limiters_of(0)
    with pytest.raises(ServiceUnavailable):
        buyer.switch(link.id, "suspended", full)
    assert full.network.calls == []  # type: ignore[attr-defined]  # it is a faulty one
