"""A payment service books what partners have paid: once for each reference, and nobody else may."""

from typing import Any

import pytest
from werkzeug.test import TestResponse

from domain.accounts.wallet import Deposit
from domain.errors import NotPossible
from tests.app.http.buying import MISSING
from tests.app.http.service import Service, Tenant, fields_of

DEPOSITS = "/v1/deposits"


class PaymentService:
    """A machine-to-machine client that may deposit."""

    def __init__(self, service: Service) -> None:
        self.service = service
        self.client_id = service.register_client(None, ["deposits"])
        self.headers = {"Authorization": f"Bearer {service.token(self.client_id)}"}

    def deposit(self, tenant: Tenant, amount: object = "5", **more: Any) -> TestResponse:
        body = {"organization": str(tenant.id), "amount": amount, "reference": "payment-1", **more}
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
    [made] = log.history(Deposit.id_of(tenant.id, "payment-1"))
    assert isinstance(made, Deposit.Made)
    assert made.actor == f"client:{payments.client_id}"
    assert payments.client_id not in tenant.get("/v1/transactions").text


WRONG: dict[str, list[object]] = {
    "amount": ["0", "0.00", "-1", 5, "1000000000000", "999999999999.999999"],
    "reference": ["", " a", "a\n", "ä", "a" * 256, None],
    "organization": ["acme", f"{{{MISSING}}}", f"urn:uuid:{MISSING}", MISSING.replace("-", ""), 7],
    "currency": ["EUR"],
}


@pytest.mark.any_database
def test_what_is_wrong_with_a_payment_is_named(acme: Tenant, payments: PaymentService) -> None:
    before = acme.balance()
    for field, values in WRONG.items():
        for wrong in values:
            reply = payments.deposit(acme, **{"amount": "5", "reference": "wrong-1", field: wrong})
            assert list(fields_of(reply)) == [field], wrong
    assert acme.balance() == before


@pytest.mark.any_database
def test_no_partner_is_given_the_scope(service: Service, acme: Tenant) -> None:
    with pytest.raises(NotPossible, match="only a machine-to-machine client"):
        service.register_client(acme.id, ["deposits", "wallet"])
