"""The Idempotency-Key of a creation: one link and one charge, whoever sends it and how often."""

from dataclasses import replace
from uuid import UUID, uuid4

import pytest

from domain.commands import link_create
from domain.errors import (
    LATE,
    REJECTED,
    IdempotencyInProgress,
    IdempotencyKeyReused,
    InsufficientBalance,
    ProvisioningError,
    ProvisioningFailed,
)
from domain.link import Link, link_id
from domain.link_events import Stage
from domain.network import NoEndpoint
from domain.plan import PlanTerms
from domain.ports import Unavailable
from tests.domain.commands.buying import Buyer, Gate, NewBuyer
from tests.faulty_network import Killed
from tests.installation import PATIENCE_S, SetClock

KEY = "key-1"


def test_the_same_request_again_is_the_same_link_and_no_second_charge(buyer: Buyer) -> None:
    buyer.hire()
    plan_id, other = buyer.sell(), buyer.open()
    first, replayed = buyer.create(plan_id, KEY, "car 7")
    assert not replayed
    for process in (buyer.process, other):
        again, replayed = buyer.create(plan_id, KEY, "car 7", process)
        assert (again.id, again.version, replayed) == (first.id, first.version, True)
    assert buyer.events()["wallet.charged"] == 1
    assert buyer.network.count("create_endpoint") == 1
    assert buyer.balance_micros == 6_000_000


def test_the_outcome_comes_again_whatever_has_changed_meanwhile(buyer: Buyer) -> None:
    buyer.hire()
    plan_id = buyer.sell()
    first, _ = buyer.create(plan_id, KEY)
    buyer.disable(plan_id)
    buyer.spend(6_000_000)
    other = buyer.open()
    other.rules = replace(other.rules, base_plan="")
    assert buyer.create(plan_id, KEY, process=other) == (first, True)


@pytest.mark.parametrize("change", ["plan", "name", "name left out", "plan that does not exist"])
def test_a_key_that_is_bound_refuses_another_request(buyer: Buyer, change: str) -> None:
    buyer.hire()
    plan_id = buyer.sell()
    buyer.create(plan_id, KEY, "car 7")
    others = {
        "plan": (buyer.sell("Asia"), "car 7"),
        "name": (plan_id, "car 8"),
        "name left out": (plan_id, None),
        "plan that does not exist": (uuid4(), "car 7"),
    }
    other, name = others[change]
    with pytest.raises(IdempotencyKeyReused):
        buyer.create(other, KEY, name)
    assert buyer.events()["link.requested"] == 1


def test_a_key_at_price_0_binds_as_well(buyer: Buyer) -> None:
    buyer.hire()
    plan_id = buyer.sell("Trial", "0.00")
    first, _ = buyer.create(plan_id, KEY)
    assert buyer.create(plan_id, KEY) == (first, True)
    with pytest.raises(IdempotencyKeyReused):
        buyer.create(buyer.sell("Asia"), KEY)


def test_a_key_belongs_to_its_organization(buyer: Buyer, new_buyer: NewBuyer) -> None:
    neighbour = new_buyer()
    buyer.hire()
    plan_id = buyer.sell()
    first, _ = buyer.create(plan_id, KEY)
    second, replayed = neighbour.create(plan_id, KEY, process=buyer.process)
    assert (first.id != second.id, replayed) == (True, False)
    assert second.organization_id == neighbour.organization_id
    buyer.check()


def test_a_failure_that_kept_no_money_frees_its_key_for_any_request(buyer: Buyer) -> None:
    buyer.hire()
    first, second = buyer.sell(), buyer.sell("Asia", "5.00")
    buyer.network.before("create_endpoint", NoEndpoint("no id"), Unavailable("down"))
    with pytest.raises(ProvisioningFailed):
        buyer.create(first, KEY)
    with pytest.raises(ProvisioningError):
        buyer.create(first, KEY, "car 7")
    link, replayed = buyer.create(second, KEY)
    assert (link.id, replayed) == (attempt(buyer, 3), False)
    assert buyer.create(second, KEY) == (buyer.link(link.id), True)
    with pytest.raises(IdempotencyKeyReused):
        buyer.create(first, KEY)
    stages = [buyer.link(attempt(buyer, n)).stage for n in (1, 2, 3)]
    assert stages == [Stage.ENDED, Stage.ENDED, Stage.ACTIVE]
    assert buyer.balance_micros == 5_000_000
    buyer.check()


def test_a_refusal_before_anything_was_begun_uses_no_attempt_up(new_buyer: NewBuyer) -> None:
    buyer = new_buyer("3.99")
    buyer.hire()
    plan_id = buyer.sell()
    with pytest.raises(InsufficientBalance):
        buyer.create(plan_id, KEY)
    buyer.pay_in(10_000)
    assert buyer.create(plan_id, KEY)[0].id == attempt(buyer, 1)


def attempt(buyer: Buyer, number: int) -> UUID:
    return link_id(buyer.organization_id, KEY, number)


def test_a_twin_that_comes_while_the_first_still_runs_gets_its_link(buyer: Buyer) -> None:
    buyer.hire()
    plan_id, other, gate = buyer.sell(), buyer.open(), Gate()
    buyer.network.before("create_endpoint", gate)
    first = buyer.create_later(plan_id, KEY)
    gate.wait()
    twins = [buyer.create_later(plan_id, KEY, process=each) for each in (buyer.process, other)]
    buyer.until_waiting(2)
    buyer.until_waiting(1, other)
    gate.open()
    link, replayed = first.result(PATIENCE_S)
    assert not replayed
    assert [each.result(PATIENCE_S) for each in twins] == [(link, True), (link, True)]
    assert buyer.balance_micros == 6_000_000
    buyer.check()


def test_a_twin_that_waits_gets_the_failure_too_and_begins_nothing(buyer: Buyer) -> None:
    buyer.hire()
    plan_id, gate = buyer.sell(), Gate(NoEndpoint("no id"))
    buyer.network.before("create_endpoint", gate)
    asked = [buyer.create_later(plan_id, KEY)]
    gate.wait()
    asked += [buyer.create_later(plan_id, KEY) for _ in range(3)]
    buyer.until_waiting(4)
    gate.open()
    for each in asked:
        error = each.exception(PATIENCE_S)
        assert isinstance(error, ProvisioningFailed)
        assert error.details == {"reason": REJECTED, "refunded": "4.00"}
    assert buyer.events()["link.requested"] == 1
    assert buyer.balance_micros == 10_000_000
    buyer.check()


def test_another_request_with_the_key_of_one_that_runs_is_refused_at_once(buyer: Buyer) -> None:
    buyer.hire()
    plan_id, gate = buyer.sell(), Gate()
    buyer.network.before("create_endpoint", gate)
    first = buyer.create_later(plan_id, KEY)
    gate.wait()
    with pytest.raises(IdempotencyKeyReused):
        buyer.create(plan_id, KEY, "car 7")
    gate.open()
    assert first.result(PATIENCE_S)[0].requested.name is None


@pytest.mark.parametrize("change", ["the money is gone", "the plan is gone"])
def test_a_twin_that_is_overtaken_while_it_is_checked_gets_the_first_outcome(
    buyer: Buyer, change: str
) -> None:
    buyer.hire()
    plan_id, offers, other = buyer.sell("Europe", "10.00"), buyer.process.link_create.offers, None
    firsts: list[Link] = []

    def overtaken(organization_id: UUID, wanted: UUID) -> PlanTerms | None:
        if not firsts:
            firsts.append(buyer.create(plan_id, KEY, process=other)[0])
            if change == "the plan is gone":
                buyer.disable(plan_id)
        return offers(organization_id, wanted)

    other = buyer.open()
    buyer.process.link_create = replace(buyer.process.link_create, offers=overtaken)
    assert buyer.create(plan_id, KEY) == (firsts[0], True)
    assert buyer.balance_micros == 0
    buyer.check()


def test_a_twin_that_is_out_of_patience_before_the_first_is_told_that_it_still_runs(
    buyer: Buyer,
) -> None:
    buyer.hire()
    plan_id, hasty, gate = buyer.sell(), buyer.open(deadline_s=0.05), Gate()
    buyer.network.before("create_endpoint", gate)
    first = buyer.create_later(plan_id, KEY)
    gate.wait()
    with pytest.raises(IdempotencyInProgress):
        buyer.create(plan_id, KEY, process=hasty)
    gate.open()
    assert first.result(PATIENCE_S)[0].stage is Stage.ACTIVE
    assert buyer.create(plan_id, KEY, process=hasty)[1]


def test_what_a_process_left_that_died_while_it_waited_is_found_by_the_same_key(
    buyer: Buyer, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan_id, next_life = buyer.sell(), buyer.open()
    begin_and_die(buyer, plan_id, monkeypatch)
    buyer.hire(next_life, after=0)
    link, replayed = buyer.create(plan_id, KEY, process=next_life)
    assert (link.id, link.stage, replayed) == (attempt(buyer, 1), Stage.ACTIVE, True)
    assert buyer.balance_micros == 6_000_000
    buyer.check()


def test_what_a_dead_process_left_undone_is_given_up_once_its_deadline_has_passed(
    new_buyer: NewBuyer, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = SetClock()
    buyer = new_buyer(clock=clock)
    plan_id, next_life = buyer.sell(), buyer.open(deadline_s=0.05)
    begin_and_die(buyer, plan_id, monkeypatch)
    with pytest.raises(IdempotencyInProgress):
        buyer.create(plan_id, KEY, process=next_life)
    clock.forward(seconds=buyer.deadline_s)
    with pytest.raises(ProvisioningError) as refused:
        buyer.create(plan_id, KEY, process=next_life)
    assert refused.value.details == {"reason": LATE, "refunded": "0.00"}
    assert buyer.link(attempt(buyer, 1)).stage is Stage.ENDED
    buyer.hire()
    assert buyer.create(plan_id, KEY)[0].id == attempt(buyer, 2)
    buyer.check()


def begin_and_die(buyer: Buyer, plan_id: UUID, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a process end right after it has asked for a link."""

    def die(*_: object) -> None:
        raise Killed

    with monkeypatch.context() as life:
        life.setattr(link_create, "wait_for", die)
        with pytest.raises(Killed):
            buyer.create(plan_id, KEY)
