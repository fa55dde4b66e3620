"""Who may do what: every refusal in its order."""

from collections.abc import Callable
from uuid import uuid4

import pytest

from app.security.authorization import Caller
from domain.accounts.organization import Status
from domain.errors import (
    OrganizationInactive,
    OrganizationNotFound,
    OrganizationSuspended,
    Unauthorized,
)
from tests.app.house import House, claims_of

Pace = Callable[[House], None]


def at_once(house: House) -> None:
    """Nothing was projected, so the aggregates decide."""
    assert house.process.log.head()


def projected(house: House) -> None:
    """Everything was projected, so the row decides."""
    house.project()


paces = pytest.mark.parametrize("pace", [at_once, projected])


@paces
def test_a_client_of_an_active_organization_is_let_in(house: House, pace: Pace) -> None:
    pace(house)
    who, cause = (house.client_id, house.organization_id), house.process.cause()
    assert house.authorize() == Caller(*who, price_micros=None, lookup_enabled=True, per_minute=0)
    change = house.process.accounts.change_organization
    change(house.organization_id, lambda each: each.change_price(7_000, cause))
    change(house.organization_id, lambda each: each.switch_lookup(cause, enabled=False))
    house.clock.forward(seconds=2)
    pace(house)
    assert house.authorize() == Caller(*who, price_micros=7_000, lookup_enabled=False, per_minute=0)


@paces
def test_what_is_unknown_is_refused(house: House, pace: Pace) -> None:
    pace(house)
    something_else = house.process.log.read(house.process.log.head() - 1, 1)[0].event.originator_id
    for named in (uuid4(), something_else):
        with pytest.raises(OrganizationNotFound):
            house.authorize_machine(str(named))
    house.client_id = "cl_nobody"
    with pytest.raises(Unauthorized):
        house.authorize()


@paces
@pytest.mark.parametrize(
    ("status", "refusal"),
    [("suspended", OrganizationSuspended), ("inactive", OrganizationInactive)],
)
def test_an_organization_that_is_not_active_is_refused(
    house: House, pace: Pace, status: Status, refusal: type[Exception]
) -> None:
    house.move_to(status)
    pace(house)
    with pytest.raises(refusal):
        house.authorize()
    with pytest.raises(refusal):
        house.authorize_machine(str(house.organization_id))
    house.move_to("active")
    pace(house)
    assert house.authorize().client_id == house.client_id


@paces
def test_the_client_counts_before_the_organization_and_that_before_the_scope(
    house: House, pace: Pace
) -> None:
    nothing: frozenset[str] = frozenset()
    house.move_to("suspended")
    pace(house)
    with pytest.raises(OrganizationSuspended):
        house.authorize(granted=nothing)
    house.revoke(house.client_id)
    pace(house)
    with pytest.raises(Unauthorized):
        house.authorize(granted=nothing)
    house.revoke(house.machine_id)
    pace(house)
    with pytest.raises(Unauthorized):
        house.authorize_machine(None)


@paces
def test_a_machine_names_its_organization_and_neither_two_nor_nonsense(
    house: House, pace: Pace
) -> None:
    pace(house)
    right = str(house.organization_id)
    for named in (right, f" {right.upper()}\t"):
        assert house.authorize_machine(named).organization_id == house.organization_id
    bare, other = right.replace("-", ""), right.replace("-", "\u2011")
    for wrong in (None, "", " ", f"{right},", f"{right},{right}", right[:-1], f"{{{right}}}"):
        with pytest.raises(OrganizationNotFound):
            house.authorize_machine(wrong)
    for wrong in (bare, f"urn:uuid:{right}", "nonsense", other):
        with pytest.raises(OrganizationNotFound):
            house.authorize_machine(wrong)


@paces
def test_neither_a_claim_nor_a_name_leads_to_another_organization(house: House, pace: Pace) -> None:
    other = house.process.organization("", "Somebody Else")
    pace(house)
    for claimed in (other, uuid4()):
        with pytest.raises(Unauthorized, match="another organization"):
            house.authorize(claimed=claimed)
    for named in (other, house.organization_id):
        with pytest.raises(OrganizationNotFound):
            house.let_in(claims_of(house.client_id, None), str(named))
    caller = house.let_in(claims_of(house.client_id, house.organization_id), str(other))
    assert caller.organization_id == house.organization_id
    house.client_id = house.machine_id
    with pytest.raises(Unauthorized, match="another organization"):
        house.authorize()
