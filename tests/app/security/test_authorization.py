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
from tests.app.house import House

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
    assert house.authorize() == Caller(*who, price_micros=None, lookup_enabled=True)
    change = house.process.accounts.change_organization
    change(house.organization_id, lambda each: each.change_price(7_000, cause))
    change(house.organization_id, lambda each: each.switch_lookup(cause, enabled=False))
    house.clock.forward(seconds=2)
    pace(house)
    assert house.authorize() == Caller(*who, price_micros=7_000, lookup_enabled=False)


@paces
def test_an_unknown_client_is_refused(house: House, pace: Pace) -> None:
    pace(house)
    house.client_id = "cl_nobody"
    with pytest.raises(Unauthorized):
        house.authorize()


@paces
def test_an_unknown_organization_is_refused(house: House, pace: Pace) -> None:
    pace(house)
    with pytest.raises(OrganizationNotFound):
        house.authorize_machine(str(uuid4()))


@paces
def test_an_id_of_something_else_is_no_organization(house: House, pace: Pace) -> None:
    pace(house)
    stream = house.process.log.read(house.process.log.head() - 1, 1)[0].event.originator_id
    with pytest.raises(OrganizationNotFound):
        house.authorize_machine(str(stream))


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
def test_a_machine_names_its_organization(house: House, pace: Pace) -> None:
    pace(house)
    for named in (str(house.organization_id), f" {str(house.organization_id).upper()}\t"):
        assert house.authorize_machine(named).organization_id == house.organization_id


@paces
def test_a_machine_that_names_none_or_two_or_nonsense_is_refused(house: House, pace: Pace) -> None:
    pace(house)
    right = str(house.organization_id)
    for named in (
        None,
        "",
        " ",
        f"{right},",
        f"{right},{right}",
        right[:-1],
        f"{{{right}}}",
        right.replace("-", ""),
        f"urn:uuid:{right}",
        "nonsense",
        right.replace("-", "‑"),  # noqa: RUF001  # Hyphens of another kind are the point.
    ):
        with pytest.raises(OrganizationNotFound):
            house.authorize_machine(named)


@paces
def test_a_claim_counts_only_while_it_is_the_clients_own(house: House, pace: Pace) -> None:
    other = house.process.organization("", "Somebody Else")
    pace(house)
    for claimed in (other, uuid4()):
        with pytest.raises(Unauthorized, match="another organization"):
            house.authorize(claimed=claimed)
    house.client_id = house.machine_id
    with pytest.raises(Unauthorized, match="another organization"):
        house.authorize()


@paces
def test_a_client_of_an_organization_cannot_name_another_one(house: House, pace: Pace) -> None:
    other = house.process.organization("", "Somebody Else")
    pace(house)
    for named in (other, house.organization_id):
        with pytest.raises(OrganizationNotFound):
            house.let_in(house.client_id, None, str(named))
    caller = house.let_in(house.client_id, house.organization_id, str(other))
    assert caller.organization_id == house.organization_id
