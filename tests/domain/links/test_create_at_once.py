"""A link whose sender does not wait for it; and what a creation would cost, asked beforehand."""

from dataclasses import replace
from datetime import timedelta
from uuid import UUID, uuid4

import pytest

from domain.errors import (
    LATE,
    NO_ESIM,
    NOT_STARTED,
    REJECTED,
    UNREACHABLE,
    ConfigError,
    InsufficientBalance,
    ProvisioningError,
    Refused,
    ValidationFailed,
)
from domain.limiter import share_of
from domain.links.create import LinkRequest
from domain.links.link import Link, Stage
from domain.provider_errors import Rejected, Unavailable
from tests.domain.buying import PLACES, Buyer, NewBuyer
from tests.installation import SetClock, wait_until


def ask(buyer: Buyer, plan_id: UUID, key: str | None = "key-1") -> Link:
    return buyer.create(plan_id, key, waits=False)[0]


def bound(buyer: Buyer, plan_id: UUID, *, waits: bool) -> Refused:
    with pytest.raises(Refused) as failure:
        buyer.create(plan_id, "key-1", waits=waits)
    assert failure.value.is_bound
    return failure.value


def test_who_sends_the_key_again_may_wait_for_it_or_not(buyer: Buyer) -> None:
    plan_id = buyer.sell()
    waiting = buyer.create_later(plan_id, "key-1")
    wait_until(lambda: buyer.process.log.first(Link.Requested) is not None)  # It was first.
    assert ask(buyer, plan_id).stage is Stage.REQUESTED
    buyer.hire(after=0)
    link, replayed = waiting.result()
    assert (link.stage, replayed) == (Stage.ACTIVE, False)
    assert ask(buyer, plan_id).id == link.id


def test_it_holds_no_place_and_needs_none(buyer: Buyer) -> None:
    plan_id = buyer.sell("Trial", "0.00")
    waiting = [buyer.create_later(plan_id) for _ in range(share_of(PLACES))]
    buyer.until_waiting(share_of(PLACES))
    ask(buyer, plan_id)
    ask(buyer, plan_id)
    buyer.until_waiting(share_of(PLACES))
    buyer.hire(after=0)
    assert {each.result()[0].stage for each in waiting} == {Stage.ACTIVE}


def test_nobody_has_to_wait_for_its_deadline(new_buyer: NewBuyer) -> None:
    clock = SetClock()
    buyer = new_buyer(clock=clock)
    plan_id = buyer.sell()
    link = ask(buyer, plan_id)
    clock.now += timedelta(minutes=2)
    buyer.process.provisioning.work(link.id)
    assert bound(buyer, plan_id, waits=False).details == {"reason": LATE, "refunded": "0.00"}
    assert str(bound(buyer, plan_id, waits=False)).startswith(NOT_STARTED)


def quote(buyer: Buyer, plan_id: UUID, key: str | None = None) -> tuple[object, int | None]:
    """Ask for a price; whatever the answer, nothing is written."""
    head = buyer.process.log.head()
    try:
        return buyer.process.link_create.quote(
            LinkRequest(buyer.organization_id, plan_id, None, key), buyer.process.cause()
        )
    finally:
        assert buyer.process.log.head() == head
        assert set(buyer.network.calls) <= {"available_esims"}


def test_a_plan_without_an_esim_is_told_before_it_is_bought(
    buyer: Buyer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(buyer.simulator, "available_esims", lambda *_, **__: [])
    with pytest.raises(ProvisioningError) as refused:
        quote(buyer, buyer.sell())
    assert refused.value.details["reason"] == NO_ESIM


@pytest.mark.parametrize(
    ("error", "reason"), [(Unavailable("down"), UNREACHABLE), (Rejected("no"), REJECTED)]
)
def test_a_network_that_cannot_show_its_stock_is_named(
    buyer: Buyer, error: Exception, reason: str
) -> None:
    plan_id = buyer.sell()
    buyer.network.before("available_esims", error)
    with pytest.raises(ProvisioningError) as refused:
        quote(buyer, plan_id)
    assert refused.value.details == {"reason": reason, "refunded": "0.00"}


def test_what_a_creation_refuses_is_refused_in_its_order(new_buyer: NewBuyer) -> None:
    buyer = new_buyer("3.99")
    plan_id = buyer.sell()
    buyer.network.before("available_esims", Unavailable("down"))
    rules = buyer.process.provisioning_rules
    buyer.process.provisioning_rules = replace(rules, base_plan="")
    with pytest.raises(ValidationFailed):
        quote(buyer, uuid4())
    with pytest.raises(ConfigError):
        quote(buyer, plan_id)
    del buyer.process.link_create
    buyer.process.provisioning_rules = rules
    with pytest.raises(InsufficientBalance):
        quote(buyer, plan_id)
    buyer.pay_in(10_000)
    with pytest.raises(ProvisioningError):
        quote(buyer, plan_id)
    assert quote(buyer, plan_id)[1] == 0
