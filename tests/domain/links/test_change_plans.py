"""The plans of a link are changed in one request: all of it is checked, then paid, then done."""

from uuid import UUID, uuid4

import pytest

from domain.accounts.wallet import Wallet
from domain.errors import (
    LATE,
    REJECTED,
    UNREACHABLE,
    BillingNotConfigured,
    IncompleteNetworkAnswer,
    InsufficientBalance,
    LinkBusy,
    ProvisioningError,
    Refused,
    ServiceUnavailable,
    ValidationFailed,
)
from domain.links.link import Link
from domain.links.network import NoEndpoint
from domain.provider_errors import OutcomeUnknown, Rejected, Unavailable
from tests.domain.buying import Buyer, Gate, NewBuyer, Patience, WatchedPlaces
from tests.installation import PATIENCE_S, wait_until
from tests.plan_files import profile

pytestmark = pytest.mark.any_database

SHORT_S = 0.2


@pytest.fixture
def link(buyer: Buyer) -> Link:
    """A link with one plan, bought for nothing."""
    buyer.hire()
    return buyer.own()


def names(buyer: Buyer, link: Link) -> list[str]:
    """Return the plans that a link has now, once the network has exactly them."""
    activations = buyer.link(link.id).current_activations
    assert link.endpoint_id is not None
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


def test_a_change_is_done_and_on_the_link_when_its_request_is_answered(
    buyer: Buyer, link: Link
) -> None:
    [old] = link.activations
    asia, africa = buyer.sell("Asia", "1.00"), buyer.sell("Africa", "2.50")
    change, replayed = buyer.change(link.id, [old], [asia, africa, asia])
    assert names(buyer, link) == ["Asia", "Africa", "Asia"]
    assert (change.next, change.failure, replayed) == (None, None, False)
    assert change.kept_micros == 4_500_000
    assert buyer.link(link.id).open_change is None
    assert buyer.network.calls[-4:] == ["remove_plan", "add_plan", "add_plan", "add_plan"]
    buyer.check()


def test_each_plan_is_a_top_up_of_its_own_in_one_commit(buyer: Buyer, link: Link) -> None:
    plans = [buyer.sell("Asia", "1.00"), buyer.sell("Trial", "0.00"), buyer.sell("Africa", "2.00")]
    change, _ = buyer.change(link.id, add=plans)
    charges = [each for each in buyer.recorded() if isinstance(each.event, Wallet.Charged)]
    assert [each.event.description for each in charges] == ["Top-up: Asia", "Top-up: Africa"]  # type: ignore[attr-defined]  # all charges
    assert [each.event.kind for each in charges] == ["topup", "topup"]  # type: ignore[attr-defined]  # the same
    assert charges[1].position == charges[0].position + 1
    added = [str(each.activation_id) for each in change.added if each.price is not None]
    assert [each.event.metadata["activation_id"] for each in charges] == added  # type: ignore[attr-defined]  # the same
    assert buyer.balance_micros == 7_000_000
    buyer.check()


def test_a_removal_costs_nothing_and_gives_nothing_back(new_buyer: NewBuyer) -> None:
    buyer = new_buyer("4.00")
    buyer.hire()
    link, _ = buyer.create(buyer.sell())
    change, _ = buyer.change(link.id, list(link.activations))
    assert names(buyer, link) == []
    assert (change.kept_micros, buyer.balance_micros) == (0, 0)
    assert buyer.link(link.id).status == "active"
    buyer.check()


def test_everything_that_is_wrong_is_told_at_once_and_nothing_is_begun(
    buyer: Buyer, link: Link
) -> None:
    [mine] = link.activations
    [foreign] = buyer.own("Oceania").activations
    removed_id = buyer.change(link.id, add=[buyer.sell("Trial", "0.00")])[0].added[0].activation_id
    buyer.change(link.id, [removed_id])
    gone = buyer.sell("Gone")
    buyer.disable(gone)
    unsold = buyer.sell("Unsold", provider_plan_id=...)
    other = buyer.sell("Other", sponsor_profiles=[profile("sp-2")])
    add = [buyer.sell("Asia"), uuid4(), gone, unsold, other]
    refused = refusal(buyer, link, [foreign, mine, uuid4(), removed_id], add)
    assert isinstance(refused, ValidationFailed)
    wrong = {"remove.0", "remove.2", "remove.3", "add.1", "add.2", "add.3", "add.4"}
    assert refused.details.keys() == wrong


def test_a_plan_has_to_run_on_the_sponsor_profile_of_the_link(buyer: Buyer) -> None:
    buyer.hire()
    link = buyer.own("Europe", sponsor_profiles=[profile("sp-1"), profile("sp-2")])
    assert link.sponsor_profile is not None
    mine = link.sponsor_profile.id
    [other] = {"sp-1", "sp-2"} - {mine}
    both = buyer.sell("Both", "1.00", sponsor_profiles=[profile(other), profile(mine)])
    buyer.change(link.id, add=[both])
    refused = refusal(buyer, link, [], [buyer.sell("One", sponsor_profiles=[profile(other)])])
    assert list(refused.details) == ["add.0"]


@pytest.mark.parametrize(
    ("amount", "billing"), [("", BillingNotConfigured), ("3.99", InsufficientBalance)]
)
def test_what_is_wrong_with_the_request_comes_before_the_money(
    new_buyer: NewBuyer, amount: str, billing: type[Refused]
) -> None:
    buyer = new_buyer(amount)
    buyer.hire()
    link, plan_id = buyer.own(), buyer.sell("Asia")
    assert isinstance(refusal(buyer, link, [uuid4()], [plan_id]), ValidationFailed)
    assert isinstance(refusal(buyer, link, [], [plan_id]), billing)


def test_the_sum_has_to_be_there_or_nothing_is_done(new_buyer: NewBuyer) -> None:
    buyer = new_buyer("7.999999")
    buyer.hire()
    link, plan_id = buyer.own(), buyer.sell("Asia")
    refused = refusal(buyer, link, list(link.activations), [plan_id, plan_id])
    assert refused.details == {"required": "8.00", "available": "7.999999", "currency": "USD"}
    assert names(buyer, link) == ["Europe"]


def test_without_a_wallet_free_changes_are_done(new_buyer: NewBuyer) -> None:
    buyer = new_buyer("")
    buyer.hire()
    link = buyer.own()
    buyer.change(link.id, list(link.activations), [buyer.sell("Trial", "0.00")])
    assert names(buyer, link) == ["Trial"]
    buyer.check()


@pytest.mark.parametrize(
    ("error", "refused", "reason"),
    [
        (NoEndpoint("no id"), IncompleteNetworkAnswer, REJECTED),
        (Rejected("no"), ProvisioningError, REJECTED),
        (Unavailable("down"), ProvisioningError, UNREACHABLE),
    ],
)
def test_what_was_not_done_is_back_before_a_failure_is_told(
    buyer: Buyer, link: Link, error: Exception, refused: type[Refused], reason: str
) -> None:
    [old] = link.activations
    asia, africa = buyer.sell("Asia", "1.00"), buyer.sell("Africa", "2.00")
    buyer.network.before("add_plan", int, error)
    with pytest.raises(refused) as told:
        buyer.change(link.id, [old], [asia, africa, asia])
    assert type(told.value) is refused
    details = {"refunded": "3.00", "removed": [str(old)], "added": [str(asia)]}
    assert told.value.details == {"reason": reason, **details}
    assert "3.00 USD has been refunded; what was done before it stays" in str(told.value)
    assert ("new Idempotency-Key" in str(told.value)) == (reason == UNREACHABLE)
    assert names(buyer, link) == ["Asia"]
    assert buyer.balance_micros == 9_000_000
    buyer.check()


def test_a_removal_that_fails_leaves_everything_as_it_was(buyer: Buyer, link: Link) -> None:
    buyer.network.before("remove_plan", Unavailable("down"))
    with pytest.raises(ProvisioningError) as told:
        buyer.change(link.id, list(link.activations), [buyer.sell("Asia")])
    details = {"refunded": "4.00", "removed": [], "added": []}
    assert told.value.details == {"reason": UNREACHABLE, **details}
    assert names(buyer, link) == ["Europe"]
    assert buyer.balance_micros == 10_000_000
    buyer.check()


def test_a_lost_reply_is_no_failure(buyer: Buyer, link: Link) -> None:
    buyer.network.after("add_plan", OutcomeUnknown("lost"))
    buyer.network.after("remove_plan", OutcomeUnknown("lost"))
    buyer.change(link.id, list(link.activations), [buyer.sell("Asia")])
    assert names(buyer, link) == ["Asia"]
    assert buyer.network.count("add_plan") == buyer.network.count("remove_plan") == 1
    buyer.check()


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
    buyer.check()


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
    buyer.check()


def test_what_nobody_has_begun_by_the_deadline_changes_nothing(buyer: Buyer) -> None:
    workers = buyer.hire()
    link = buyer.own()
    workers.stop()
    hasty = buyer.open(deadline_s=SHORT_S)
    with pytest.raises(ProvisioningError) as refused:
        buyer.change(link.id, add=[buyer.sell("Asia")], process=hasty)
    details = {"refunded": "4.00", "removed": [], "added": []}
    assert refused.value.details == {"reason": LATE, **details}
    assert buyer.link(link.id).open_change is None
    assert buyer.balance_micros == 10_000_000
    buyer.check()


def test_a_change_that_finds_no_place_begins_nothing(buyer: Buyer, link: Link) -> None:
    full = buyer.open()
    full.waiting = WatchedPlaces(0)
    head = buyer.process.log.head()
    with pytest.raises(ServiceUnavailable):
        buyer.change(link.id, add=[buyer.sell("Asia")], process=full)
    assert buyer.process.log.head() == head + 1  # The plan.


def test_what_a_reader_sees_meanwhile_does_not_disturb_a_change(buyer: Buyer, link: Link) -> None:
    seen = iter(["suspended", "active", "suspended", "active"])

    def read() -> None:
        current = buyer.link(link.id)
        current.note_seen(next(seen), None, None, buyer.process.cause())  # type: ignore[arg-type]  # a status of the network
        buyer.process.log.append(current)

    buyer.network.before("add_plan", read, read)
    buyer.network.after("add_plan", read, read)
    buyer.change(link.id, add=[buyer.sell("Asia", "1.00"), buyer.sell("Africa", "1.00")])
    assert names(buyer, link) == ["Europe", "Asia", "Africa"]
    assert buyer.events()["link.status_seen"] == 4
    buyer.check()
