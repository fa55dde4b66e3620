"""An unknown parameter of a query buys nothing; where nothing can be bought, it is only named."""

import pytest

from tests.app.http.edge.test_isolation import ask, case_of, operations
from tests.app.http.service import Service, Tenant

pytestmark = pytest.mark.any_database


def test_every_other_operation_names_what_it_ignores(service: Service, acme: Tenant) -> None:
    named = set()
    for operation in operations(service):
        if operation.line.startswith(("GET", "DELETE")):
            case = case_of(operation, acme)
            query = {**case.sent.get("query_string", {}), "dryRun": "true", "page_no\x00": "2"}
            reply = ask(acme, case, query_string=query)
            assert reply.status_code in {200, 202}, (case, reply.text)
            if reply.mimetype == "application/json" and "success" in reply.json:
                assert reply.json["meta"]["ignored"] == ["dryRun", "page_no\ufffd"], case
                named.add(operation.name)
    assert len(named) > 20


def test_what_is_named_is_bounded(acme: Tenant) -> None:
    query = "&".join(f"{number}{'x' * 100}" for number in range(500))
    for path in ("/v1/wallet", "/v1/transactions/none"):
        reply = acme.get(f"{path}?{query}")
        names = reply.json["meta"]["ignored"]
        assert [len(each) for each in names] == [64] * 10
    assert "ignored" not in acme.get("/v1/wallet?").json["meta"]
    assert "ignored" not in acme.get("/v1/transactions?page=1").json["meta"]
    refused = acme.post("/v1/links?dryRun=true", json={})
    assert (refused.status_code, "ignored" in refused.json["meta"]) == (422, False)
