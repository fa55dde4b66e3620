"""The account: what an organization has, pays and may do, and its threshold of a low balance."""

import pytest

from domain.accounts.organization import Organization
from tests.app.http.service import Service, Tenant

pytestmark = pytest.mark.any_database

ACCOUNT = "/v1/account"
THRESHOLD = "low_balance_threshold"


def change(tenant: Tenant, threshold: object) -> object:
    reply = tenant.open("PATCH", ACCOUNT, json={THRESHOLD: threshold})
    assert reply.status_code == 200, reply.text
    return reply.json["data"][THRESHOLD]


def test_a_threshold_above_the_balance_is_told_with_that_balance(service: Service) -> None:
    tenant = service.tenant(balance="9.75")
    for threshold in ("9.75", "10"):
        change(tenant, threshold)
    events = service.container.log.history(tenant.id)
    told = [each for each in events if isinstance(each, Organization.LowBalanceThresholdSet)]
    assert [(each.balance_micros, each.currency) for each in told] == [
        (None, None),
        (9_750_000, "USD"),
    ]
