"""A payment service books what partners have paid: once for each reference, and nobody else may."""

from typing import Any

import pytest
from werkzeug.test import TestResponse

from domain.accounts.wallet import Deposit, deposit_id
from domain.errors import NotPossible
from projections.audit.auditor import check_log
from tests.app.http.conftest import MakeService
from tests.app.http.service import Service, Tenant, code_of, fields_of
from tests.domain.asking import all_at_once

DEPOSITS = "/v1/deposits"


class PaymentService:
    """A machine-to-machine client that may deposit."""

    def __init__(self, service: Service, scopes: tuple[str, ...] = ("deposits",)) -> None:
        self.service = service
        self.client_id = service.register_client(None, scopes)
        self.headers = {"Authorization": f"Bearer {service.token(self.client_id)}"}

    def deposit(self, tenant: Tenant, amount: object = "5", **more: Any) -> TestResponse:
        body = {
            "organization": str(tenant.id),
            "amount": amount,
            "reference": "payment-1",
            **more,
        }
        return self.service.client.post(DEPOSITS, json=body, headers=self.headers)


@pytest.fixture(scope="module")
def payments(service: Service) -> PaymentService:
    return PaymentService(service)


@pytest.mark.any_database
def test_who_made_it_is_kept_and_no_partner_sees_it(
    service: Service, payments: PaymentService
) -> None:
    tenant = service.tenant()
    payments.deposit(tenant)
    log = service.container.log
    [made] = log.history(deposit_id(tenant.id, "payment-1"))
    assert isinstance(made, Deposit.Made)
    assert made.actor == f"client:{payments.client_id}"
    assert payments.client_id not in tenant.get("/v1/transactions").text


def test_twelve_at_once_are_one_deposit(service: Service, payments: PaymentService) -> None:
    tenant = service.tenant("1.00")
    statuses = [
        each.status_code if isinstance(each, TestResponse) else each
        for each in all_at_once(12, lambda _: payments.deposit(tenant))
    ]
    assert sorted(map(str, statuses)) == ["200"] * 11 + ["201"]
    assert tenant.balance() == "6.00"


@pytest.mark.any_database
def test_a_suspended_organization_is_paid_all_the_same(
    service: Service, payments: PaymentService
) -> None:
    tenant = service.tenant("1.00")
    tenant.set_status("suspended")
    assert payments.deposit(tenant).status_code == 201


@pytest.mark.any_database
@pytest.mark.parametrize(
    ("field", "wrong"),
    [
        ("amount", "0"),
        ("amount", "0.00"),
        ("amount", "-1"),
        ("amount", 5),
        ("amount", "1000000000000"),
        ("amount", "999999999999.999999"),
        ("reference", ""),
        ("reference", " a"),
        ("reference", "a\n"),
        ("reference", "ä"),
        ("reference", "a" * 256),
        ("reference", None),
        ("organization", "acme"),
        ("organization", "{0d9c8f3e-58f5-4f0c-9c3e-2a4b8f1d7e60}"),
        ("organization", "urn:uuid:0d9c8f3e-58f5-4f0c-9c3e-2a4b8f1d7e60"),
        ("organization", "0d9c8f3e58f54f0c9c3e2a4b8f1d7e60"),
        ("organization", 7),
        ("currency", "EUR"),
    ],
)
def test_what_is_wrong_with_a_payment_is_named(
    acme: Tenant, payments: PaymentService, field: str, wrong: object
) -> None:
    before = acme.balance()
    reply = payments.deposit(acme, **{"amount": "5", "reference": "wrong-1", field: wrong})
    assert list(fields_of(reply)) == [field]
    assert acme.balance() == before


@pytest.mark.any_database
def test_only_a_machine_that_was_given_the_scope_may_deposit(
    service: Service, acme: Tenant
) -> None:
    body = {"organization": str(acme.id), "amount": "5", "reference": "mine"}
    own = acme.post(DEPOSITS, json=body)
    everything = PaymentService(service, scopes=())
    for reply in (own, everything.deposit(acme)):
        assert (reply.status_code, code_of(reply)) == (403, "INSUFFICIENT_SCOPE")
    assert service.client.post(DEPOSITS, json=body).status_code == 401
    with pytest.raises(NotPossible, match="only a machine-to-machine client"):
        service.register_client(acme.id, ["deposits", "wallet"])


@pytest.mark.any_database
def test_a_payment_service_reads_nothing_and_is_stopped_when_it_is_revoked(
    make_service: MakeService,
) -> None:
    service = make_service()
    tenant, payments = service.tenant("1.00"), PaymentService(service)
    named = {**payments.headers, "X-Organization-Id": str(tenant.id)}
    for path in ("/v1/wallet", "/v1/transactions", "/v1/account"):
        assert code_of(service.client.get(path, headers=named)) == "INSUFFICIENT_SCOPE"
    service.container.accounts.change_client(
        payments.client_id, lambda client: client.revoke(service.cause())
    )
    assert payments.deposit(tenant).status_code == 401
    assert tenant.balance() == "1.00"
    assert check_log(service.container.log).failures == []
