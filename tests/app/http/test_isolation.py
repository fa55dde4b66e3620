"""Nothing of another organization is ever visible: it answers as if it did not exist."""

from collections.abc import Callable
from typing import Any

import pytest

from tests.app.http.service import Service, Tenant

MISSING = "8c1f0c7e-5b1f-4a5e-8a44-0f6f6f0e2d11"

# What an id in a path can name: whoever adds an operation says here how to make one of it.
SAMPLES: dict[tuple[str, str], Callable[[Tenant], str]] = {
    ("read_job", "job_id"): lambda tenant: tenant.finished_job(["+971508245915"])["job_id"],
    ("read_transaction", "transaction_id"): lambda tenant: tenant.transactions()[0]["id"],
}


def operations(service: Service) -> list[tuple[str, str, str, str]]:
    """Return method, path, operation and parameter of each operation with an id in its path."""
    document: dict[str, Any] = service.client.get("/openapi.json").json
    return [
        (method, path, operation["operationId"], parameter["name"])
        for path, operations in document["paths"].items()
        for method, operation in operations.items()
        if method in {"get", "post", "put", "patch", "delete"}
        for parameter in operations.get("parameters", [])
        if parameter["in"] == "path"
    ]


def test_every_operation_with_an_id_is_in_the_table(service: Service) -> None:
    assert {(name, parameter) for _, _, name, parameter in operations(service)} == set(SAMPLES)


def test_what_belongs_to_another_organization_does_not_exist(
    service: Service, acme: Tenant, rival: Tenant
) -> None:
    for method, path, name, parameter in operations(service):
        sample = SAMPLES[name, parameter](acme)
        own = acme.open(method, path.replace(f"{{{parameter}}}", sample))
        foreign = rival.open(method, path.replace(f"{{{parameter}}}", sample))
        missing = rival.open(method, path.replace(f"{{{parameter}}}", MISSING))
        assert own.status_code == 200, name
        assert foreign.status_code == missing.status_code == 404, name
        assert foreign.json["error"] == missing.json["error"], name
        assert set(foreign.headers.keys()) == set(missing.headers.keys()), name


@pytest.mark.parametrize("path", ["/v1/wallet", "/v1/transactions"])
def test_lists_and_balances_are_those_of_the_caller(service: Service, path: str) -> None:
    poor, rich = service.tenant(balance="1.00"), service.tenant(balance="7.00")
    assert poor.balance() == "1.00"
    assert [entry["amount"] for entry in poor.transactions()] == ["1.00"]
    assert [entry["amount"] for entry in rich.transactions()] == ["7.00"]
    assert poor.get(path).json["data"] != rich.get(path).json["data"]


def test_the_transactions_of_another_cannot_be_found_by_reference(
    acme: Tenant, rival: Tenant
) -> None:
    job_id = acme.finished_job(["+971508245915"])["job_id"]
    assert acme.transactions(reference=job_id)
    assert rival.transactions(reference=job_id) == []
