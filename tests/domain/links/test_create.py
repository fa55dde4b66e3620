"""A link is bought in one request: what is checked, in which order, and what it comes to."""

from datetime import timedelta
from uuid import UUID

import pytest

from domain.errors import (
    InsufficientBalance,
    Refused,
    SpendingLimit,
    ValidationFailed,
)
from domain.money import format_amount
from tests.domain.buying import Buyer, NewBuyer
from tests.installation import SetClock

DETAILS = {"required": "4.00", "available": "3.999999", "currency": "USD"}


def refusal(buyer: Buyer, plan_id: UUID) -> Refused:
    """Ask for a link that has to be refused before anything is begun."""
    head = buyer.process.log.head()
    with pytest.raises(Refused) as refused:
        buyer.create(plan_id, key="key-1")
    assert buyer.process.log.head() == head
    assert buyer.network.calls == []
    return refused.value


def test_a_price_is_paid_from_the_moment_on_at_which_it_takes_effect(new_buyer: NewBuyer) -> None:
    clock = SetClock()
    buyer = new_buyer("20.00", clock=clock)
    buyer.hire()
    plan_id, starts_at = buyer.sell("Europe"), clock.now + timedelta(minutes=1)
    process, cause = buyer.process, buyer.process.cause()
    process.catalogue.change(plan_id, lambda it: it.price(5_000_000, cause, starts_at=starts_at))
    buyer.process.projector.catch_up()
    clock.now = starts_at - timedelta(microseconds=1)
    before, _ = buyer.create(plan_id, key="key-1")
    clock.now = starts_at
    after, _ = buyer.create(plan_id)
    buyer.change(after.id, add=[plan_id])
    prices = [each.requested.plan.price_micros for each in (before, after)]
    assert (prices, buyer.balance_micros) == ([4_000_000, 5_000_000], 6_000_000)
    assert buyer.create(plan_id, key="key-1") == (buyer.link(before.id), True)


@pytest.mark.parametrize("why", ["disabled", "of another organization", "hidden", "not connected"])
def test_a_plan_that_cannot_be_bought_is_refused_on_its_field(buyer: Buyer, why: str) -> None:
    other = buyer.process.organization(name="Other")
    changes: dict[str, dict[str, object]] = {
        "of another organization": {"organization_id": str(other)},
        "hidden": {"excluded_organizations": [str(buyer.organization_id)]},
        "not connected": {"provider_plan_id": ...},
    }
    plan_id = buyer.sell("Europe", **changes.get(why, {}))
    if why == "disabled":
        buyer.disable(plan_id)
    refused = refusal(buyer, plan_id)
    assert isinstance(refused, ValidationFailed)
    assert list(refused.details) == ["plan_id"]


def test_a_balance_that_goes_meanwhile_leaves_the_esim_alone(buyer: Buyer) -> None:
    buyer.hire()
    buyer.network.after("available_esims", lambda: buyer.spend(6_000_001))
    with pytest.raises(InsufficientBalance) as refused:
        buyer.create(buyer.sell(), key="key-1")
    assert refused.value.details == DETAILS
    assert buyer.network.calls == ["available_esims", "lpa"]  # Which change nothing.
    assert "esim.reserved" not in buyer.events()
    assert buyer.balance_micros == 3_999_999
    buyer.pay_in(1)
    assert not buyer.create(buyer.sell("Asia"), key="key-1")[1]  # Nothing was kept: it is free.
    assert buyer.balance_micros == 0


@pytest.mark.parametrize("limit_micros", [3_999_999, 0])
def test_a_limit_that_is_set_meanwhile_leaves_the_esim_alone(
    buyer: Buyer, limit_micros: int
) -> None:
    def limit() -> None:
        process = buyer.process
        process.accounts.set_spending_limit(buyer.organization_id, limit_micros, process.cause())

    buyer.hire()
    buyer.network.after("available_esims", limit)
    with pytest.raises(SpendingLimit) as refused:
        buyer.create(buyer.sell(), key="key-1")
    told = {"limit": format_amount(limit_micros), "spent": "0.00", "required": "4.00"}
    assert refused.value.details == {**told, "currency": "USD"}
    assert "esim.reserved" not in buyer.events()
    limit_micros = 4_000_000
    limit()
    assert not buyer.create(buyer.sell("Asia"), key="key-1")[1]  # Nothing was kept: it is free.
