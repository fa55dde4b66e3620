"""An unknown parameter of a query buys nothing; where nothing can be bought, it is only named."""

from typing import Any

import pytest

from tests.app.http.edge.test_isolation import IN_PATH, SAMPLES, WITHOUT_ID
from tests.app.http.service import Service, Tenant

pytestmark = pytest.mark.any_database


def test_every_other_operation_names_what_it_ignores(service: Service, acme: Tenant) -> None:
    document: dict[str, Any] = service.client.get("/openapi.json").json
    named = set()
    for path, told in document["paths"].items():
        for method in {"get", "delete"} & told.keys():
            name, names = told[method]["operationId"], IN_PATH.findall(path)
            if names and (name, names[0]) not in SAMPLES:
                continue
            known = SAMPLES[name, names[0]](acme).split("/") if names else []
            sent = {} if names else WITHOUT_ID[name](acme)
            query = {**sent.pop("query_string", {}), "dryRun": "true", "page_no\x00": "2"}
            place = path.format(**dict(zip(names, known, strict=True)))
            reply = acme.open(method, place, query_string=query, **sent)
            assert reply.status_code in {200, 202}, (path, reply.text)
            if reply.mimetype == "application/json" and "success" in reply.json:
                assert reply.json["meta"]["ignored"] == ["dryRun", "page_no\ufffd"], path
                named.add(name)
    assert len(named) > 20


def test_what_is_named_is_bounded(acme: Tenant) -> None:
    query = "&".join(f"{number}{'x' * 100}" for number in range(500))
    for path in ("/v1/wallet", "/v1/transactions/none"):
        reply = acme.get(f"{path}?{query}")
        names = reply.json["meta"]["ignored"]
        assert [len(each) for each in names] == [64] * 10
    assert "ignored" not in acme.get("/v1/wallet?").json["meta"]
    assert "ignored" not in acme.get("/v1/transactions?page=1").json["meta"]
