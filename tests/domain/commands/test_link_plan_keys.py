"""The Idempotency-Key of a plan change: one change and one payment, whoever sends it again."""

from dataclasses import replace
from uuid import UUID

import pytest

from domain.commands.link_plans import BoundFailure
from domain.errors import (
    LATE,
    REJECTED,
    IdempotencyInProgress,
    IdempotencyKeyReused,
    InsufficientBalance,
    ProvisioningError,
    ProvisioningFailed,
)
from domain.link import Link
from domain.network import NoEndpoint, OutcomeUnknown
from domain.plan import PlanTerms
from domain.plan_change import PlanChange, plan_change_id
from domain.ports import Unavailable
from tests.domain.commands.asking import all_at_once
from tests.domain.commands.buying import DEADLINE_S, Buyer, Gate, NewBuyer, Patience
from tests.installation import PATIENCE_S, wait_until

KEY = "key-1"


@pytest.fixture
def link(buyer: Buyer) -> Link:
    """A link with one plan, bought for nothing."""
    buyer.hire()
    return buyer.own()


def attempt(buyer: Buyer, number: int) -> UUID:
    return plan_change_id(buyer.organization_id, KEY, number)


def test_the_same_request_again_is_the_same_change_and_no_second_charge(
    buyer: Buyer, link: Link
) -> None:
    remove, add = list(link.activations), [buyer.sell("Asia"), buyer.sell("Africa", "2.00")]
    first, replayed = buyer.change(link.id, remove, add, KEY)
    assert (first.id, replayed) == (attempt(buyer, 1), False)
    for process in (buyer.process, buyer.open()):
        assert buyer.change(link.id, remove, add, KEY, process) == (first, True)
    assert buyer.events()["wallet.charged"] == 2
    assert buyer.network.count("add_plan") == 2
    assert buyer.balance_micros == 4_000_000


def test_the_outcome_comes_again_whatever_has_changed_meanwhile(buyer: Buyer, link: Link) -> None:
    asia = buyer.sell("Asia")
    first, _ = buyer.change(link.id, add=[asia], key=KEY)
    buyer.disable(asia)
    buyer.spend(6_000_000)
    buyer.change(link.id, [first.added[0].activation_id])
    assert buyer.change(link.id, add=[asia], key=KEY) == (first, True)


def test_a_key_that_is_bound_refuses_another_request(buyer: Buyer, link: Link) -> None:
    [old] = link.activations
    asia, africa = buyer.sell("Asia", "1.00"), buyer.sell("Africa", "1.00")
    neighbour = buyer.own("Oceania")
    buyer.change(link.id, [old], [asia, africa], KEY)
    others = [
        lambda: buyer.change(link.id, [old], [africa, asia], KEY),
        lambda: buyer.change(link.id, [old], [asia], KEY),
        lambda: buyer.change(link.id, [], [asia, africa], KEY),
        lambda: buyer.change(link.id, [old], [], KEY),
        lambda: buyer.change(neighbour.id, [old], [asia, africa], KEY),
    ]
    for other in others:
        with pytest.raises(IdempotencyKeyReused):
            other()
    assert buyer.events()["plan_change.requested"] == 1


def test_a_key_of_a_change_is_not_that_of_a_creation(buyer: Buyer, link: Link) -> None:
    asia = buyer.sell("Asia", "1.00")
    change, replayed = buyer.change(link.id, add=[asia], key=KEY)
    made, replayed_too = buyer.create(asia, KEY)
    assert (replayed, replayed_too) == (False, False)
    assert made.id != change.id


def test_a_change_of_which_nothing_was_applied_frees_its_key_for_any_request(
    buyer: Buyer, link: Link
) -> None:
    asia, africa, neighbour = buyer.sell("Asia"), buyer.sell("Africa", "2.00"), buyer.own("Oceania")
    buyer.network.before("add_plan", NoEndpoint("no id"))
    buyer.network.before("remove_plan", Unavailable("down"))
    with pytest.raises(ProvisioningFailed) as told:
        buyer.change(link.id, add=[asia], key=KEY)
    assert told.value.details == {
        "reason": REJECTED,
        "refunded": "4.00",
        "removed": [],
        "added": [],
    }
    with pytest.raises(ProvisioningError):
        buyer.change(link.id, list(link.activations), [asia, africa], KEY)
    change, replayed = buyer.change(neighbour.id, add=[africa], key=KEY)
    assert (change.id, replayed) == (attempt(buyer, 3), False)
    assert buyer.change(neighbour.id, add=[africa], key=KEY)[1]
    with pytest.raises(IdempotencyKeyReused):
        buyer.change(link.id, add=[asia], key=KEY)
    assert buyer.balance_micros == 8_000_000
    buyer.check()


def test_a_failed_change_of_which_something_was_applied_is_bound_to_its_key(
    buyer: Buyer, link: Link
) -> None:
    [old], add = link.activations, [buyer.sell("Asia"), buyer.sell("Africa", "2.00")]
    buyer.network.before("add_plan", NoEndpoint("no id"))
    with pytest.raises(ProvisioningFailed) as told:
        buyer.change(link.id, [old], add, KEY)
    head = buyer.process.log.head()
    for process in (buyer.process, buyer.open()):
        with pytest.raises(BoundFailure) as again:
            buyer.change(link.id, [old], add, KEY, process)
        assert type(again.value.refusal) is ProvisioningFailed
        assert again.value.refusal.details == told.value.details
        assert str(again.value.refusal) == str(told.value)
        assert str(again.value) == "PROVISIONING_FAILED"
    details = {"refunded": "6.00", "removed": [str(old)], "added": []}
    assert told.value.details == {"reason": REJECTED, **details}
    with pytest.raises(IdempotencyKeyReused):
        buyer.change(link.id, [], add, KEY)
    assert buyer.process.log.head() == head
    assert buyer.balance_micros == 10_000_000
    buyer.check()


def test_a_refusal_before_anything_was_begun_uses_no_attempt_up(new_buyer: NewBuyer) -> None:
    buyer = new_buyer("3.99")
    buyer.hire()
    link, asia = buyer.own(), buyer.sell("Asia")
    with pytest.raises(InsufficientBalance):
        buyer.change(link.id, add=[asia], key=KEY)
    buyer.pay_in(10_000)
    assert buyer.change(link.id, add=[asia], key=KEY)[0].id == attempt(buyer, 1)


@pytest.mark.parametrize("error", [None, NoEndpoint("no id")], ids=["done", "failed"])
@pytest.mark.parametrize("step", ["remove_plan", "add_plan"])
def test_twins_that_come_while_the_first_still_runs_get_its_outcome(
    buyer: Buyer, link: Link, step: str, error: Exception | None
) -> None:
    remove, add, gate = list(link.activations), [buyer.sell("Asia")], Gate(error)
    other = buyer.open()
    buyer.network.before(step, gate)
    first = buyer.change_later(link.id, remove, add, KEY)
    gate.wait()
    twins = [
        buyer.change_later(link.id, remove, add, KEY, process)
        for process in (buyer.process, other, other)
    ]
    buyer.until_waiting(2)
    buyer.until_waiting(2, other)
    gate.open()
    outcomes = [each.exception(PATIENCE_S) or each.result() for each in (first, *twins)]
    if error is None:
        assert isinstance(outcomes[0], tuple)
        assert outcomes[1:] == [(outcomes[0][0], True)] * 3
    else:
        told = [each.refusal if isinstance(each, BoundFailure) else each for each in outcomes]
        assert {type(each) for each in told} == {ProvisioningFailed}
        assert len({str(each.details) for each in told}) == 1  # type: ignore[union-attr]  # all refusals
        is_bound = step == "add_plan"  # The removal before it was done.
        assert [isinstance(each, BoundFailure) for each in outcomes[1:]] == [is_bound] * 3
    assert buyer.events()["plan_change.requested"] == 1
    buyer.check()


@pytest.mark.parametrize("change", ["the money is gone", "the plan is gone", "it was removed"])
def test_a_twin_that_is_overtaken_while_it_is_checked_gets_the_first_outcome(
    buyer: Buyer, link: Link, change: str
) -> None:
    asia, other, offers = buyer.sell("Asia", "10.00"), buyer.open(), buyer.process.link_plans.offers
    remove = list(link.activations) if change == "it was removed" else []
    firsts: list[PlanChange] = []

    def overtaken(organization_id: UUID, wanted: UUID) -> PlanTerms | None:
        if not firsts:
            firsts.append(buyer.change(link.id, remove, [asia], KEY, other)[0])
            if change == "the plan is gone":
                buyer.disable(asia)
        return offers(organization_id, wanted)

    buyer.process.link_plans = replace(buyer.process.link_plans, offers=overtaken)
    assert buyer.change(link.id, remove, [asia], KEY) == (firsts[0], True)
    assert buyer.balance_micros == 0
    buyer.check()


def test_a_twin_that_finds_the_link_busy_with_its_own_change_gets_the_outcome_in_time(
    buyer: Buyer, link: Link, patience: Patience
) -> None:
    """The change fails long before its link opens again, and the twin had not seen it begin."""
    asia, gate = buyer.sell("Asia"), Gate()
    patient = buyer.open(deadline_s=10 * DEADLINE_S)
    find = patient.log.find
    firsts: list[object] = []
    seen: list[object] = []

    def first_is_faster(kind: type, stream_id: UUID, **more: object) -> object:
        found = find(kind, stream_id, **more)
        if kind is PlanChange and not firsts:
            firsts.append(buyer.change_later(link.id, add=[asia], key=KEY))
            gate.wait()
        elif kind is PlanChange and not seen:
            assert found is not None
            seen.append(found)
            patience.end()  # Not before: a change that failed by then would have freed the key.
        return found

    patient.log.find = first_is_faster
    buyer.network.before("add_plan", gate)
    with pytest.raises(ProvisioningError) as told:
        buyer.change(link.id, add=[asia], key=KEY, process=patient)
    assert told.value.details == {"reason": LATE, "refunded": "4.00", "removed": [], "added": []}
    assert buyer.link(link.id).open_change == attempt(buyer, 1)
    gate.open()
    buyer.check()


def test_a_removal_that_was_done_after_all_binds_its_key(
    buyer: Buyer, link: Link, patience: Patience
) -> None:
    gate, patient = Gate(OutcomeUnknown("lost")), buyer.open()
    remove, add = list(link.activations), [buyer.sell("Asia")]
    before = buyer.balance_micros
    buyer.network.after("remove_plan", gate)
    buyer.network.before("usage", Unavailable("down"))  # When it is asked what became of it.
    first = buyer.change_later(link.id, remove, add, KEY)
    gate.wait()
    patience.end()
    told = first.exception(PATIENCE_S)
    assert isinstance(told, ProvisioningError)
    assert told.details == {"reason": LATE, "refunded": "4.00", "removed": [], "added": []}
    wait_until(lambda: buyer.network.count("usage") == 1)
    gate.open()
    wait_until(lambda: not buyer.link(link.id).current_activations)
    for _ in range(2):
        with pytest.raises(BoundFailure) as bound:
            buyer.change(link.id, remove, add, KEY, patient)
        assert bound.value.refusal.details == told.details
    assert buyer.balance_micros == before
    buyer.check()


def test_a_twin_that_is_out_of_patience_before_the_first_is_told_that_it_still_runs(
    buyer: Buyer, link: Link
) -> None:
    asia, hasty, gate = buyer.sell("Asia"), buyer.open(deadline_s=0.05), Gate()
    buyer.network.before("add_plan", gate)
    first = buyer.change_later(link.id, add=[asia], key=KEY)
    gate.wait()
    with pytest.raises(IdempotencyInProgress):
        buyer.change(link.id, add=[asia], key=KEY, process=hasty)
    gate.open()
    done = first.result(PATIENCE_S)[0]
    assert buyer.change(link.id, add=[asia], key=KEY, process=hasty) == (done, True)


@pytest.mark.parametrize("amount", ["10.00", "4.00"], ids=["rich", "just enough"])
def test_twelve_who_race_with_one_key_make_one_change_and_get_one_answer(
    new_buyer: NewBuyer, amount: str
) -> None:
    buyer = new_buyer(amount)
    buyer.hire()
    link, processes = buyer.own(), (buyer.process, buyer.open())
    remove, add = list(link.activations), [buyer.sell("Asia")]
    outcomes = all_at_once(
        12, lambda each: buyer.change(link.id, remove, add, KEY, processes[each % 2])
    )
    done = [each for each in outcomes if isinstance(each, tuple)]
    assert len(done) == 12, outcomes
    assert {change.id for change, _ in done} == {attempt(buyer, 1)}
    assert sum(not replayed for _, replayed in done) == 1
    assert buyer.events()["wallet.charged"] == 1
    buyer.check()


def test_changes_that_race_for_the_last_money_are_done_while_it_lasts(
    new_buyer: NewBuyer,
) -> None:
    buyer = new_buyer("10.00")
    buyer.hire()
    links = [buyer.own(f"Trial {number}") for number in range(3)]
    asia = buyer.sell("Asia", "3.00")
    outcomes = all_at_once(9, lambda each: buyer.change(links[each % 3].id, add=[asia]))
    refused = [each for each in outcomes if isinstance(each, InsufficientBalance)]
    assert len(refused) == 6, outcomes
    assert buyer.balance_micros == 1_000_000
    wait_until(lambda: all(buyer.link(link.id).open_change is None for link in links))
    assert sum(len(buyer.link(link.id).activations) for link in links) == 6
    buyer.check()
