"""A payment service books what partners have paid: once for each reference, and nobody else may."""

from typing import Any

import pytest
from werkzeug.test import TestResponse

from domain.accounts.wallet import Deposit, deposit_id
from domain.errors import NotPossible
from tests.app.http.service import Service, Tenant, fields_of
from tests.domain.asking import all_at_once

DEPOSITS = "/v1/deposits"


class PaymentService:
    """A machine-to-machine client that may deposit."""

    def __init__(self, service: Service) -> None:
        self.service = service
        self.client_id = service.register_client(None, ["deposits"])
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
def test_no_partner_is_given_the_scope(service: Service, acme: Tenant) -> None:
    with pytest.raises(NotPossible, match="only a machine-to-machine client"):
        service.register_client(acme.id, ["deposits", "wallet"])
