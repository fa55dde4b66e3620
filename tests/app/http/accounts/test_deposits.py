"""A payment service books what partners have paid: once for each reference, and nobody else may."""

import pytest

from domain.accounts.wallet import Deposit
from domain.errors import NotPossible
from tests.app.http.service import Service, Tenant


def test_who_made_it_is_kept_and_no_partner_sees_it(service: Service) -> None:
    tenant, machine = service.tenant(), service.register_client(None, ["deposits"])
    body = {"organization": str(tenant.id), "amount": "5", "reference": "payment-1"}
    headers = {"Authorization": f"Bearer {service.token(machine)}"}
    assert service.client.post("/v1/deposits", json=body, headers=headers).status_code == 201
    log = service.container.log
    [made] = log.history(Deposit.id_of(tenant.id, "payment-1"))
    assert isinstance(made, Deposit.Made)
    assert made.actor == f"client:{machine}"
    assert machine not in tenant.get("/v1/transactions").text


def test_no_partner_is_given_the_scope(service: Service, acme: Tenant) -> None:
    with pytest.raises(NotPossible, match="only a machine-to-machine client"):
        service.register_client(acme.id, ["deposits", "wallet"])
