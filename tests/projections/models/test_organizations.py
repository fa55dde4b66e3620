"""Organizations as read: the newest word of each kind counts."""

from collections.abc import Sequence
from uuid import uuid4

import pytest

from domain.accounts.organization import Organization
from projections.models.organizations import OrganizationRow
from tests.installation import Process, SetClock


def row(process: Process, organization_id: object) -> OrganizationRow:
    process.projector.catch_up()
    with process.views.reading() as connection:
        found = {each.id: each for each in process.organizations.all(connection)}
        one = process.organizations.get(connection, found[organization_id].id)  # type: ignore[index]  # an id
    assert one == found[organization_id]  # type: ignore[index]  # the same
    return one


@pytest.mark.any_database
def test_a_registered_organization_is_active(process: Process) -> None:
    moment = SetClock()
    process.clock = moment
    made = process.accounts.register_organization(
        process.cause(),
        name="Acme",
        price_micros=7_000,
        monthly_link_fee_micros=1_000_000,
        with_wallet=False,
    )
    assert row(process, made.id) == OrganizationRow(
        id=made.id,
        name="Acme",
        status="active",
        price_micros=7_000,
        monthly_link_fee_micros=1_000_000,
        lookup_enabled=True,
        created_at=moment.now,
    )


@pytest.mark.parametrize("in_one_batch", [True, False])
def test_every_change_is_read_back(process: Process, in_one_batch: bool) -> None:  # noqa: FBT001  # It is one case of the table.
    organization_id = process.organization("")
    cause = process.cause()

    def change(what: object) -> OrganizationRow | None:
        process.accounts.change_organization(organization_id, what)  # type: ignore[arg-type]  # a change of any kind fits here
        return None if in_one_batch else row(process, organization_id)

    first = change(lambda each: each.change_status("suspended", cause))
    assert first is None or first.status == "suspended"
    second = change(lambda each: each.change_status("inactive", cause))
    assert second is None or second.status == "inactive"
    change(lambda each: each.change_price(0, cause))
    change(lambda each: each.change_monthly_link_fee(2_000_000, cause))
    change(lambda each: each.switch_lookup(cause, enabled=False))
    last = row(process, organization_id)
    assert (last.status, last.price_micros) == ("inactive", 0)
    assert (last.monthly_link_fee_micros, last.lookup_enabled) == (2_000_000, False)
    change(lambda each: each.change_price(None, cause))
    change(lambda each: each.change_status("active", cause))
    change(lambda each: each.switch_lookup(cause, enabled=True))
    last = row(process, organization_id)
    assert (last.status, last.price_micros, last.lookup_enabled) == ("active", None, True)


def test_limits_are_read_back_and_given_up_again(process: Process) -> None:
    organization_id, cause = process.organization(""), process.cause()
    for values in ((2_000_000, 600, 50_000_000), (0, 0, 0), (None, None, None)):

        def change(each: Organization, values: Sequence[int | None] = values) -> None:
            each.set_low_balance_threshold(values[0], cause)
            each.set_rate_limit(values[1], cause)
            each.set_spending_limit(values[2], cause)

        process.accounts.change_organization(organization_id, change)
        found = row(process, organization_id)
        limits = (found.rate_limit_per_minute, found.spending_limit_micros)
        assert (found.low_balance_threshold_micros, *limits) == values


@pytest.mark.any_database
def test_a_change_concerns_one_organization(process: Process) -> None:
    kept, changed = process.organization(""), process.organization("")
    cause = process.cause()
    process.accounts.change_organization(
        changed, lambda each: each.change_status("suspended", cause)
    )
    assert row(process, kept).status == "active"
    assert row(process, changed).status == "suspended"


def test_all_organizations_come_oldest_first(process: Process) -> None:
    clock = SetClock()
    process.clock = clock
    made = []
    for _ in range(5):
        organization = Organization.register(uuid4(), process.cause(), name="Acme")
        made.append(organization.id)
        clock.forward(seconds=-1)
        process.log.append(organization)
    process.projector.catch_up()
    with process.views.reading() as connection:
        assert [each.id for each in process.organizations.all(connection)] == made[::-1]


@pytest.mark.any_database
def test_an_organization_that_does_not_exist_is_none(process: Process) -> None:
    with process.views.reading() as connection:
        assert process.organizations.get(connection, uuid4()) is None
        assert process.organizations.all(connection) == []
