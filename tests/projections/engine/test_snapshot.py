"""A snapshot's row is its aggregate as the log has it, however the log was cut into batches."""

import pytest

from domain.accounts.organization import ApiClient, Organization
from domain.cause import Cause
from tests.installation import Process


def change(it: Organization, cause: Cause, number: int) -> None:
    match number:
        case 0:
            it.change_status("suspended", cause)
        case 1:
            it.set_low_balance_threshold(7, cause)
            it.set_rate_limit(9, cause)
        case 2:
            it.set_low_balance_threshold(None, cause)
            it.switch_lookup(cause, enabled=False)
        case _:
            it.change_price(0, cause)
            it.change_monthly_link_fee(3, cause)
            it.set_spending_limit(5, cause)


@pytest.mark.parametrize("singly", [False, True])
def test_a_row_is_the_aggregate_as_it_is_now(process: Process, *, singly: bool) -> None:
    made, client = process.organization("1.00"), process.client(None)
    for number in range(4):
        if singly:
            process.projector.catch_up()
        cause = process.cause()
        process.accounts.change_organization(made, lambda it, n=number, c=cause: change(it, c, n))
        process.accounts.change_client(client, lambda it, c=cause: it.rotate_secret("other", c))
    process.accounts.change_client(client, lambda it: it.revoke(process.cause()))
    process.projector.catch_up()
    with process.views.reading() as connection:
        rows = process.organizations.get(connection, made), process.clients.get(connection, client)
    its = process.log.get(Organization, made), process.log.get(ApiClient, ApiClient.id_of(client))
    for row, aggregate in zip(rows, its, strict=True):
        names = {"created_at": "created_on"}
        for field in row.__struct_fields__:
            assert getattr(row, field) == getattr(aggregate, names.get(field, field)), field
