"""The plans of a link are changed in one request: all of it is checked, then paid, then done."""

from collections.abc import Sequence
from uuid import UUID

import pytest

from domain.errors import (
    LATE,
    LinkBusy,
    ProvisioningError,
    Refused,
    ServiceUnavailable,
    ValidationFailed,
)
from domain.links.buying import NOT_ACCEPTED
from domain.links.link import Link
from domain.links.waiting import limiters_of
from domain.provider_errors import Unavailable
from tests.domain.buying import Buyer, Gate, Patience
from tests.installation import PATIENCE_S, wait_until
from tests.plan_files import profile

SHORT_S = 0.2


@pytest.fixture
def link(buyer: Buyer) -> Link:
    """A link with one plan, bought for nothing."""
    buyer.hire()
    return buyer.own()


def names(buyer: Buyer, link: Link) -> list[str]:
    """Return the plans that a link has now, once the network has exactly them."""
    activations = buyer.link(link.id).current_activations
    addons = buyer.simulator.usage(link.endpoint_id, timeout_s=1.0).addons
    assert {each.addon_id for each in addons} == {each.addon_id for each in activations}
    return [each.plan.name for each in activations]


def refusal(buyer: Buyer, link: Link, remove: list[UUID], add: list[UUID]) -> Refused:
    """Ask for a change that has to be refused before anything is begun."""
    head, calls = buyer.process.log.head(), len(buyer.network.calls)
    with pytest.raises(Refused) as refused:
        buyer.change(link.id, remove, add, "key-1")
    assert (buyer.process.log.head(), len(buyer.network.calls)) == (head, calls)
    return refused.value


def test_a_plan_has_to_run_on_the_sponsor_profile_of_the_link(buyer: Buyer) -> None:
    buyer.hire()
    link = buyer.own("Europe", sponsor_profiles=[profile("sp-1"), profile("sp-2")])
    mine = link.sponsor_profile.id
    [other] = {"sp-1", "sp-2"} - {mine}
    both = buyer.sell("Both", "1.00", sponsor_profiles=[profile(other), profile(mine)])
    buyer.change(link.id, add=[both])
    refused = refusal(buyer, link, [], [buyer.sell("One", sponsor_profiles=[profile(other)])])
    assert list(refused.details) == ["add.0"]


def test_a_change_waits_for_the_one_before_it(buyer: Buyer, link: Link) -> None:
    gate, other = Gate(), buyer.open()
    asia, africa = buyer.sell("Asia", "1.00"), buyer.sell("Africa", "2.00")
    buyer.network.before("add_plan", gate)
    first = buyer.change_later(link.id, add=[asia])
    gate.wait()
    later = [
        buyer.change_later(link.id, list(link.activations), [africa], process=each)
        for each in (buyer.process, other)
    ]
    buyer.until_waiting(2)
    buyer.until_waiting(1, other)
    gate.open()
    assert first.exception(PATIENCE_S) is None
    # Of the two that remove the same activation, the second finds it gone.
    refusals = [each.exception(PATIENCE_S) for each in later]
    assert sorted(type(each).__name__ for each in refusals) == ["NoneType", "ValidationFailed"]
    assert names(buyer, link) == ["Asia", "Africa"]
    assert buyer.balance_micros == 7_000_000


def test_a_link_that_stays_busy_is_told_after_the_deadline(buyer: Buyer, link: Link) -> None:
    gate, hasty = Gate(), buyer.open(deadline_s=SHORT_S)
    asia = buyer.sell("Asia", "1.00")
    buyer.network.before("add_plan", gate)
    first = buyer.change_later(link.id, add=[asia])
    gate.wait()
    head = buyer.process.log.head()
    with pytest.raises(LinkBusy):
        buyer.change(link.id, add=[asia], process=hasty)
    assert buyer.process.log.head() == head
    gate.open()
    assert first.result(PATIENCE_S)[0].failure is None


def test_a_network_that_blocks_costs_the_deadline_and_no_money(
    buyer: Buyer, link: Link, patience: Patience
) -> None:
    asia, gate = buyer.sell("Asia", "1.00"), Gate()
    buyer.network.before("add_plan", int, gate)
    asked = buyer.change_later(link.id, add=[asia, asia, asia])
    gate.wait()
    patience.end()
    refused = asked.exception(PATIENCE_S)
    assert isinstance(refused, ProvisioningError)
    assert refused.details == {
        "reason": LATE,
        "refunded": "2.00",
        "removed": [],
        "added": [str(asia)],
    }
    assert buyer.balance_micros == 9_000_000
    assert buyer.link(link.id).open_change is not None  # The late one is still to be taken off.
    gate.open()
    wait_until(lambda: buyer.link(link.id).open_change is None)
    assert names(buyer, link) == ["Europe", "Asia"]


def test_a_change_that_finds_no_place_begins_nothing(buyer: Buyer, link: Link) -> None:
    full = buyer.open()
    full.waiting = limiters_of(0)
    head = buyer.process.log.head()
    with pytest.raises(ServiceUnavailable):
        buyer.change(link.id, add=[buyer.sell("Asia")], process=full)
    assert buyer.process.log.head() == head + 1  # The plan.


def test_what_a_reader_sees_meanwhile_does_not_disturb_a_change(buyer: Buyer, link: Link) -> None:
    seen = iter(["suspended", "active", "suspended", "active"])

    def read() -> None:
        buyer.see(link.id, next(seen))  # type: ignore[arg-type]  # a status of the network

    buyer.network.before("add_plan", read, read)
    buyer.network.after("add_plan", read, read)
    buyer.change(link.id, add=[buyer.sell("Asia", "1.00"), buyer.sell("Africa", "1.00")])
    assert names(buyer, link) == ["Europe", "Asia", "Africa"]
    assert buyer.events()["link.status_seen"] == 4


def test_what_the_network_does_not_take_is_refused_before_it_is_paid(
    buyer: Buyer, monkeypatch: pytest.MonkeyPatch
) -> None:
    buyer.hire()
    link = buyer.own("Europe", sponsor_profiles=[])
    assert link.sponsor_profile is None
    mine, other = (buyer.sell(name, "1.00", sponsor_profiles=[]) for name in ("Mine", "Other"))

    def topups(endpoint_id: str, plans: Sequence[str], *, timeout_s: float) -> Sequence[str]:
        assert (endpoint_id, timeout_s > 0) == (link.endpoint_id, True)
        return plans[:1]

    monkeypatch.setattr(buyer.simulator, "topups", topups)
    balance = buyer.balance_micros
    with pytest.raises(ValidationFailed) as refused:
        buyer.change(link.id, add=[mine, other])
    assert (refused.value.details, buyer.balance_micros) == ({"add.1": [NOT_ACCEPTED]}, balance)
    buyer.change(link.id, add=[mine])
    buyer.network.before("topups", Unavailable())
    buyer.change(link.id, add=[other])
    buyer.change(buyer.own("Europe").id, add=[buyer.sell("More", "1.00")])  # By its profile.
