"""A link is bought in one request: what is checked, in which order, and what it comes to."""

from dataclasses import replace
from datetime import timedelta
from uuid import UUID, uuid4

import pytest

from domain.catalogue.plan import SponsorProfile
from domain.errors import (
    REJECTED,
    UNREACHABLE,
    BillingNotConfigured,
    ConfigError,
    IncompleteNetworkAnswer,
    InsufficientBalance,
    ProvisioningError,
    Refused,
    SpendingLimit,
    ValidationFailed,
)
from domain.links.link import Stage
from domain.links.network import NoEndpoint
from domain.money import format_amount
from domain.provider_errors import Rejected, Unavailable
from tests.domain.buying import Buyer, NewBuyer
from tests.installation import SetClock
from tests.plan_files import profile

pytestmark = pytest.mark.any_database

DETAILS = {"required": "4.00", "available": "3.999999", "currency": "USD"}


def refusal(buyer: Buyer, plan_id: UUID) -> Refused:
    """Ask for a link that has to be refused before anything is begun."""
    head = buyer.process.log.head()
    with pytest.raises(Refused) as refused:
        buyer.create(plan_id, key="key-1")
    assert buyer.process.log.head() == head
    assert buyer.network.calls == []
    return refused.value


def test_a_link_is_active_and_paid_for_when_its_request_is_answered(buyer: Buyer) -> None:
    buyer.hire()
    link, replayed = buyer.create(buyer.sell("Europe", sponsor_profiles=[profile()]), name="car 7")
    assert (link.stage, link.status, replayed) == (Stage.ACTIVE, "active", False)
    name = buyer.process.link_readings.open_text(link.organization_id, link.id, link.name)
    assert (link.requested.name, name, link.requested.request_id) == (None, "car 7", "request-1")
    assert link.sponsor_profile == SponsorProfile(**profile())
    assert link.iccid is not None
    endpoint = buyer.simulator.find_endpoint(link.iccid, timeout_s=1.0)
    assert endpoint is not None
    assert (endpoint.endpoint_id, endpoint.reference) == (link.endpoint_id, str(link.id))
    assert buyer.balance_micros == 6_000_000
    buyer.check()


def test_a_link_is_what_was_bought_whatever_becomes_of_the_plan(buyer: Buyer) -> None:
    buyer.hire()
    plan_id = buyer.sell("Europe", data_mb=2_500, validity_days=9)
    link, _ = buyer.create(plan_id)
    bought = link.requested.plan
    assert (bought.plan_id, bought.provider_plan_id, bought.name) == (plan_id, "europe", "Europe")
    assert (bought.price_micros, bought.data_mb, bought.validity_days) == (4_000_000, 2_500, 9)
    assert bought.countries == ["DE"]
    [activation] = link.current_activations
    assert (activation.plan, activation.bought_at) == (bought, link.activated_at)


def test_a_price_is_paid_from_the_moment_on_at_which_it_takes_effect(new_buyer: NewBuyer) -> None:
    clock = SetClock()
    buyer = new_buyer("20.00", clock=clock)
    buyer.hire()
    plan_id, starts_at = buyer.sell("Europe"), clock.now + timedelta(minutes=1)
    buyer.process.catalogue.price(
        plan_id, 5_000_000, buyer.process.cause(), starts_at=starts_at, below_cost=False
    )
    buyer.process.projector.catch_up()
    clock.now = starts_at - timedelta(microseconds=1)
    before, _ = buyer.create(plan_id, key="key-1")
    clock.now = starts_at
    after, _ = buyer.create(plan_id)
    buyer.change(after.id, add=[plan_id])
    prices = [each.requested.plan.price_micros for each in (before, after)]
    assert (prices, buyer.balance_micros) == ([4_000_000, 5_000_000], 6_000_000)
    assert buyer.create(plan_id, key="key-1") == (buyer.link(before.id), True)
    buyer.check()


def test_a_free_link_needs_no_wallet(new_buyer: NewBuyer) -> None:
    buyer = new_buyer("")
    buyer.hire()
    link, _ = buyer.create(buyer.sell("Trial", "0.00"), key="key-1")
    assert (link.stage, link.requested.price) == (Stage.ACTIVE, None)
    assert buyer.create(link.requested.plan.plan_id, key="key-1")[1]
    buyer.check()


def test_a_free_link_leaves_a_wallet_alone(buyer: Buyer) -> None:
    buyer.hire()
    buyer.create(buyer.sell("Trial", "0.00"))
    assert "wallet.charged" not in buyer.events()
    assert buyer.balance_micros == 10_000_000


def test_a_plan_that_does_not_exist_is_named_before_everything_else(
    new_buyer: NewBuyer,
) -> None:
    buyer = new_buyer("")
    buyer.process.provisioning_rules = replace(buyer.process.provisioning_rules, base_plan="")
    refused = refusal(buyer, uuid4())
    assert isinstance(refused, ValidationFailed)
    assert list(refused.details) == ["plan_id"]


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


def test_without_a_base_plan_nothing_is_sold_whatever_the_wallet_holds(
    new_buyer: NewBuyer,
) -> None:
    for number, amount in enumerate(["", "1.00", "10.00"]):
        buyer = new_buyer(amount)
        buyer.process.provisioning_rules = replace(buyer.process.provisioning_rules, base_plan="")
        assert isinstance(refusal(buyer, buyer.sell(f"Europe {number}")), ConfigError)


def test_without_a_wallet_only_free_links_are_sold(new_buyer: NewBuyer) -> None:
    buyer = new_buyer("")
    assert isinstance(refusal(buyer, buyer.sell()), BillingNotConfigured)


def test_a_balance_that_is_short_is_told_before_anything_is_begun(
    new_buyer: NewBuyer,
) -> None:
    buyer = new_buyer("3.999999")
    refused = refusal(buyer, buyer.sell())
    assert isinstance(refused, InsufficientBalance)
    assert refused.details == DETAILS


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
    buyer.check()


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
    buyer.check()


def test_a_wallet_that_is_there_too_late_is_no_error_of_ours(new_buyer: NewBuyer) -> None:
    buyer = new_buyer("0")
    buyer.hire()
    plan_id = buyer.sell()
    assert isinstance(refusal(buyer, plan_id), InsufficientBalance)
    buyer.pay_in(4_000_000)
    assert buyer.create(plan_id, key="key-1")[0].stage is Stage.ACTIVE
    assert buyer.balance_micros == 0
    buyer.check()


@pytest.mark.parametrize(
    ("error", "refused", "reason"),
    [
        (NoEndpoint("no id"), IncompleteNetworkAnswer, REJECTED),
        (Rejected("no"), ProvisioningError, REJECTED),
        (Unavailable("down"), ProvisioningError, UNREACHABLE),
    ],
)
def test_what_was_taken_is_back_before_a_failure_is_told(
    buyer: Buyer, error: Exception, refused: type[Refused], reason: str
) -> None:
    buyer.hire()
    buyer.network.before("create_endpoint", error)
    with pytest.raises(refused) as told:
        buyer.create(buyer.sell())
    assert type(told.value) is refused
    assert told.value.details == {"reason": reason, "refunded": "4.00"}
    assert told.value.retryable is (reason == UNREACHABLE)
    assert "4.00 USD has been refunded" in str(told.value)
    assert buyer.balance_micros == 10_000_000
    buyer.check()


@pytest.mark.parametrize("error", [Unavailable("down"), Rejected("no")])
def test_without_an_esim_nothing_was_taken(buyer: Buyer, error: Exception) -> None:
    buyer.hire()
    buyer.network.before("available_esims", error)
    with pytest.raises(ProvisioningError) as told:
        buyer.create(buyer.sell())
    reason = REJECTED if isinstance(error, Rejected) else UNREACHABLE
    assert told.value.details == {"reason": reason, "refunded": "0.00"}
    assert "nothing was taken" in str(told.value)
    assert not {"wallet.charged", "wallet.refunded", "esim.reserved"} & buyer.events().keys()
    buyer.check()


def test_a_free_link_that_fails_gives_nothing_back(buyer: Buyer) -> None:
    buyer.hire()
    buyer.network.before("create_endpoint", NoEndpoint("no id"))
    with pytest.raises(IncompleteNetworkAnswer) as told:
        buyer.create(buyer.sell("Trial", "0.00"))
    assert told.value.details == {"reason": REJECTED, "refunded": "0.00"}
    assert "wallet.refunded" not in buyer.events()
    buyer.check()


def test_without_a_key_each_request_is_a_link_of_its_own(buyer: Buyer) -> None:
    buyer.hire()
    plan_id = buyer.sell()
    first, second = buyer.create(plan_id), buyer.create(plan_id)
    assert first[0].id != second[0].id
    assert first[0].iccid != second[0].iccid
    assert (first[1], second[1]) == (False, False)
    assert buyer.balance_micros == 2_000_000
    buyer.check()
