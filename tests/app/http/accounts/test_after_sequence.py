"""Who follows the wallet by its sequences gets every entry once, oldest first."""

from typing import Any

import pytest

from tests.app.http.service import Service, Tenant, fields_of

PATH = "/v1/transactions"


@pytest.fixture
def tenant(service: Service) -> Tenant:
    found = service.tenant(balance="1.00")
    for index in range(6):
        found.deposit(f"{index + 2}.00")
    service.container.projector.catch_up()
    return found


def read(tenant: Tenant, **query: object) -> Any:
    reply = tenant.get(PATH, query_string=query)
    assert reply.status_code == 200, reply.text
    return reply.json["data"]


@pytest.mark.parametrize("after", [0, 2, 6, 7, 10**12])
def test_what_is_behind_a_sequence_comes_oldest_first(tenant: Tenant, after: int) -> None:
    every = [*reversed(read(tenant)["data"])]
    page = read(tenant, after_sequence=after, per_page=2, page=2)
    assert page["data"] == every[after + 2 : after + 4]
    assert page["meta"]["total"] == max(0, len(every) - after)
    csv = tenant.get(PATH, query_string={"after_sequence": after}, headers={"Accept": "text/csv"})
    sequences = [int(line.split(",")[0]) for line in csv.text.splitlines()[1:]]
    assert sequences == [each["sequence"] for each in every[after:]]


@pytest.mark.parametrize("other", ["kind=deposit", "from=2026-01-01", "reference=a"])
def test_it_stands_alone(tenant: Tenant, other: str) -> None:
    refused = fields_of(tenant.get(f"{PATH}?after_sequence=1&{other}"))
    assert refused == {"after_sequence": ["Must be given without kind, from, to and reference."]}
    assert [*fields_of(tenant.get(f"{PATH}?after_sequence=-1"))] == ["after_sequence"]
