"""The account: what an organization has, pays and may do, and its threshold of a low balance."""

from uuid import UUID

import pytest

from domain.accounts.organization import THRESHOLDS_MAX, Organization
from domain.log.log import replay
from tests.app.http.conftest import MakeService
from tests.app.http.service import Service, Tenant, code_of, fields_of
from tests.installation import SetClock

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


@pytest.mark.parametrize("wrong", ["-1", "1.0000001", "1e3", "", " 1", "1\n", "1" * 13, 5, 1.5, []])
def test_a_wrong_threshold_is_named(acme: Tenant, wrong: object) -> None:
    reply = acme.open("PATCH", ACCOUNT, json={THRESHOLD: wrong})
    assert list(fields_of(reply)) == [THRESHOLD]


def test_a_threshold_is_changed_some_times_a_day_and_its_stream_stays_short(
    make_service: MakeService,
) -> None:
    clock = SetClock()
    service = make_service(clock=clock)
    tenant = service.tenant()
    for micros in range(THRESHOLDS_MAX):
        change(tenant, str(micros))
    assert change(tenant, str(THRESHOLDS_MAX - 1)), "what changes nothing is no change"
    refused = tenant.open("PATCH", ACCOUNT, json={THRESHOLD: None})
    assert code_of(refused) == "RATE_LIMITED"
    assert refused.headers["Retry-After"] == f"{12 * 3600 + 1}"
    organization = replay(service.container.log.history(UUID(str(tenant.id))))
    assert isinstance(organization, Organization)
    clock.forward(seconds=12 * 3600)
    tenant.headers = {"Authorization": f"Bearer {service.token(tenant.client_id)}"}
    assert change(tenant, None) is None
