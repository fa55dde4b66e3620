"""The account: what an organization has, pays and may do, and its threshold of a low balance."""

from uuid import UUID

import pytest

from domain.accounts.organization import THRESHOLDS_MAX, Organization
from domain.log.log import replay
from domain.money import parse_amount
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


def test_the_account_tells_prices_wallet_and_limits(service: Service) -> None:
    tenant = service.tenant("10.00", price="0.25")
    assert tenant.get(ACCOUNT).json["data"] == {
        "organization": {"id": str(tenant.id), "name": "Acme", "status": "active"},
        "client": {
            "id": tenant.client_id,
            "scopes": ["lookup", "plans", "links", "wallet", "webhooks"],
        },
        "prices": {"lookup": "0.25", "monthly_link_fee": "0.00", "currency": "USD"},
        "wallet": {"balance": "10.00", "currency": "USD"},
        "low_balance_threshold": None,
        "limits": {
            "requests_per_minute": None,
            "spending": None,
            "job_numbers": 1000,
            "open_job_numbers": 100_000,
        },
        "sandbox": True,
    }


def test_what_was_just_spent_is_told_beside_its_limit(service: Service) -> None:
    tenant = service.tenant("10.00")
    accounts = service.container.accounts
    accounts.set_spending_limit(tenant.id, parse_amount("1"), service.cause())
    tenant.look_up("+14155552671")
    account = tenant.get(ACCOUNT).json["data"]
    assert account["wallet"]["balance"] == "9.995"
    assert account["limits"]["spending"].pop("month") == f"{service.container.clock():%Y-%m}"
    assert account["limits"]["spending"] == {
        "limit": "1.00",
        "spent": "0.005",
        "available": "0.995",
        "currency": "USD",
    }
    accounts.set_spending_limit(tenant.id, 0, service.cause())
    assert tenant.get(ACCOUNT).json["data"]["limits"]["spending"]["available"] == "0.00"


def test_an_organization_without_a_wallet_has_an_account(service: Service) -> None:
    tenant = service.tenant(balance=None)
    assert tenant.get(ACCOUNT).json["data"]["wallet"] is None
    assert change(tenant, "5") == "5.00", "the wallet may come later"


def test_the_threshold_is_set_and_taken_away(service: Service) -> None:
    tenant, other = service.tenant(), service.tenant()
    for given, told in (("12.5", "12.50"), ("0", "0.00"), ("0.000001", "0.000001"), (None, None)):
        assert change(tenant, given) == told
        assert tenant.get(ACCOUNT).json["data"][THRESHOLD] == told
    assert other.get(ACCOUNT).json["data"][THRESHOLD] is None


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


def test_a_change_names_what_it_changes(acme: Tenant) -> None:
    assert list(fields_of(acme.open("PATCH", ACCOUNT, json={}))) == [THRESHOLD]
    more = acme.open("PATCH", ACCOUNT, json={THRESHOLD: None, "name": "Other"})
    assert list(fields_of(more)) == ["name"]


def test_the_account_needs_the_scope_of_the_wallet(service: Service) -> None:
    tenant = service.tenant(scopes=["lookup"])
    for reply in (tenant.get(ACCOUNT), tenant.open("PATCH", ACCOUNT, json={THRESHOLD: None})):
        assert code_of(reply) == "INSUFFICIENT_SCOPE"


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
