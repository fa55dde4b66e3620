"""The OpenAPI document says all that a partner needs, and what it says is so."""

import json
import re
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest
from werkzeug.test import TestResponse

from app.adapters.networks.simulated.script import Fault
from app.http.lookups.replies import Carrier as CarrierReply
from app.http.lookups.replies import NumberResult
from domain.errors import Refused
from domain.lookups.ports import Carrier, NumberFacts
from tests.app.http.buying import FREE, Buyer
from tests.app.http.conftest import MakeService
from tests.app.http.edge.test_errors import every_subclass
from tests.app.http.service import Service, Tenant
from tests.plan_files import import_plans, plan

METHODS = {"get", "post", "put", "patch", "delete"}
NO_TOKEN = {
    "/auth/token",
    "/.well-known/jwks.json",
    "/.well-known/oauth-authorization-server",
    "/number-lookup/health",
    "/livez",
    "/readyz",
}


@pytest.fixture(scope="module")
def document(service: Service) -> dict[str, Any]:
    reply = service.client.get("/openapi.json")
    assert (reply.status_code, reply.mimetype) == (200, "application/json")
    found: dict[str, Any] = reply.json
    return found


def operations(document: dict[str, Any]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    for path, members in document["paths"].items():
        for method in METHODS & members.keys():
            yield path, method, members[method]


def resolved(document: dict[str, Any], schema: dict[str, Any]) -> dict[str, Any]:
    while "$ref" in schema:
        schema = document["components"]["schemas"][schema["$ref"].rpartition("/")[2]]
    return schema


def test_it_names_itself(document: dict[str, Any]) -> None:
    assert document["openapi"].startswith("3.0.")
    assert document["info"]["version"] == "1.0.0"
    assert document["info"]["title"]
    for word in ("Idempotency-Key", "+15005550001", "X-Request-Id", "per_page", "retryable"):
        assert word in document["info"]["description"] or word in json.dumps(document)


def test_every_route_of_the_app_is_described(service: Service, document: dict[str, Any]) -> None:
    aside = {"/openapi.json", "/docs", "/docs/{name}"}
    aside.add("/.well-known/oauth-authorization-server/{issuer_path}")
    routes = {
        (re.sub(r"<(?:path:)?(\w+)>", r"{\1}", rule.rule), method.lower())
        for rule in service.app.url_map.iter_rules()
        for method in rule.methods or ()
        if method not in {"HEAD", "OPTIONS"}
    }
    described = {(path, method) for path, method, _ in operations(document)}
    assert {route for route in routes if route[0] not in aside} == described


def test_every_operation_is_told_in_words(document: dict[str, Any]) -> None:
    names = [operation["operationId"] for _, _, operation in operations(document)]
    assert len(set(names)) == len(names)
    tags = {tag["name"]: tag["description"] for tag in document["tags"]}
    assert all(tags.values())
    for path, method, operation in operations(document):
        assert operation["summary"], (path, method)
        assert operation["description"], (path, method)
        assert set(operation["tags"]) <= tags.keys()


def test_every_field_is_told_in_words(document: dict[str, Any]) -> None:
    silent = [
        f"{name}.{field}"
        for name, schema in document["components"]["schemas"].items()
        for field, facts in schema.get("properties", {}).items()
        if not {"description", "enum", "$ref", "format", "items"} & facts.keys()
    ]
    assert silent == []


def test_the_carrier_is_described_honestly(document: dict[str, Any]) -> None:
    carrier = document["components"]["schemas"]["Carrier"]["properties"]
    assert "ported" in carrier["name"]["description"]
    assert "exactly one network" in carrier["mnc"]["description"]


def test_all_but_the_open_operations_need_a_token(document: dict[str, Any]) -> None:
    for path, _, operation in operations(document):
        needs = any("oauth2" in scheme for scheme in operation["security"])
        assert needs == (path not in NO_TOKEN), path
        assert {"401", "403", "500", "503"} <= operation["responses"].keys() or not needs, path
    flow = document["components"]["securitySchemes"]["oauth2"]["flows"]["clientCredentials"]
    assert flow["tokenUrl"] == "https://api.example/auth/token"
    named = {
        scope
        for _, _, operation in operations(document)
        for scheme in operation["security"]
        for scope in scheme.get("oauth2", [])
    }
    assert named == flow["scopes"].keys()


def test_a_link_is_named_by_its_id_or_its_iccid(document: dict[str, Any]) -> None:
    for path in document["paths"]:
        for parameter in document["paths"][path].get("parameters", []):
            schema = {"type": "string"}
            if parameter["name"] != "identifier":
                schema["format"] = "uuid"
            assert parameter["schema"] == schema, path


def test_every_error_has_an_example_of_its_code(document: dict[str, Any]) -> None:
    codes = set()
    for path, _, operation in operations(document):
        for status, response in operation["responses"].items():
            if int(status) < 400 or path in {"/number-lookup/health", "/readyz"}:
                continue
            media = response["content"]["application/json"]
            for code, example in media["examples"].items():
                body = example["value"]
                assert code == (body["error"] if path == "/auth/token" else body["error"]["code"])
                schema = resolved(document, media["schema"])
                assert set(schema["required"]) <= body.keys()
                codes.add(code)
    assert {refusal.code for refusal in every_subclass(Refused)} <= codes


def test_the_reasons_of_the_network_are_told(document: dict[str, Any]) -> None:
    for reason in ("network_unavailable", "deadline", "network_rejected", "no_esim_available"):
        assert f"`{reason}`" in document["info"]["description"]
    responses = document["paths"]["/v1/links"]["post"]["responses"]["502"]
    for example in responses["content"]["application/json"]["examples"].values():
        assert example["value"]["error"]["details"].keys() == {"reason", "refunded", "retryable"}


@pytest.mark.parametrize(
    ("sent", "described"), [(NumberFacts, NumberResult), (Carrier, CarrierReply)]
)
def test_the_facts_of_a_number_are_described_by_the_names_that_they_are_sent_by(
    sent: type[msgspec.Struct], described: type[msgspec.Struct]
) -> None:
    assert sent.__struct_fields__ == described.__struct_fields__


def test_every_reference_leads_somewhere(document: dict[str, Any]) -> None:
    text = json.dumps(document)
    named = set(re.findall(r'"#/components/schemas/(\w+)"', text))
    assert named <= document["components"]["schemas"].keys()
    assert not document["components"]["schemas"].keys() - named


def test_replies_may_grow_and_bodies_may_not(document: dict[str, Any]) -> None:
    schemas = document["components"]["schemas"]
    strict = {name for name, schema in schemas.items() if "additionalProperties" in schema}
    bodies = {"BulkBody", "LookupBody", "LinkBody", "LinkPlansBody", "NoBody"}
    assert bodies <= strict <= {*bodies, "TokenForm"}


def keys_match(document: dict[str, Any], schema: dict[str, Any], value: Any, place: str) -> None:
    """Check that a reply has no field that its schema lacks, and lacks none that is required."""
    schema = resolved(document, schema)
    if "anyOf" in schema:
        schema = resolved(document, schema["anyOf"][0])
    if isinstance(value, list):
        for item in value:
            keys_match(document, schema["items"], item, f"{place}[]")
    elif isinstance(value, dict) and "properties" in schema:
        assert set(schema.get("required", [])) <= value.keys() <= schema["properties"].keys(), place
        for name, member in value.items():
            keys_match(document, schema["properties"][name], member, f"{place}.{name}")


def test_every_example_of_a_success_looks_as_described(document: dict[str, Any]) -> None:
    shown = 0
    for path, method, operation in operations(document):
        for response in operation["responses"].values():
            media = response.get("content", {}).get("application/json", {})
            if "example" in media:
                keys_match(document, media["schema"], media["example"], f"{method} {path}")
                shown += 1
    assert shown == 20


def test_replies_look_as_described(document: dict[str, Any], acme: Tenant) -> None:
    job = acme.finished_job(["+971508245915", "+9991234567", "+15005550001"])
    entry = acme.transactions()[0]
    import_plans(acme.service.container, plan(organization_id=str(acme.id)))
    plan_id = acme.get("/v1/plans").json["data"]["data"][0]["id"]
    asked = {
        ("/number-lookup", "post", ""): acme.look_up("+971508245915"),
        ("/number-lookup/bulk", "post", ""): acme.create_job(["+971508245915"]),
        ("/number-lookup/bulk/{job_id}", "get", ""): acme.get(
            f"/number-lookup/bulk/{job['job_id']}"
        ),
        ("/v1/wallet", "get", ""): acme.get("/v1/wallet"),
        ("/v1/transactions", "get", ""): acme.get("/v1/transactions"),
        ("/v1/transactions/{transaction_id}", "get", ""): acme.get(
            f"/v1/transactions/{entry['id']}"
        ),
        ("/v1/plans", "get", ""): acme.get("/v1/plans"),
        ("/v1/plans/regions", "get", ""): acme.get("/v1/plans/regions"),
        ("/v1/plans/{plan_id}", "get", ""): acme.get(f"/v1/plans/{plan_id}"),
        ("/v1/plans/{plan_id}/coverage", "get", ""): acme.get(f"/v1/plans/{plan_id}/coverage"),
        ("/v1/plans", "get", "wrong"): acme.get("/v1/plans?country=UK"),
        **ask_for_links(Buyer(acme)),
        ("/number-lookup/bulk", "post", "wrong"): acme.create_job([]),
        ("/v1/transactions/{transaction_id}", "get", "wrong"): acme.get("/v1/transactions/none"),
        ("/auth/token", "post", "wrong"): acme.service.client.post("/auth/token"),
        ("/number-lookup/health", "get", ""): acme.get("/number-lookup/health"),
        ("/livez", "get", ""): acme.get("/livez"),
        ("/readyz", "get", ""): acme.get("/readyz"),
        ("/.well-known/jwks.json", "get", ""): acme.get("/.well-known/jwks.json"),
        ("/.well-known/oauth-authorization-server", "get", ""): acme.get(
            "/.well-known/oauth-authorization-server"
        ),
    }
    for (path, method, _), reply in asked.items():
        described = document["paths"][path][method]["responses"][str(reply.status_code)]
        schema = described["content"]["application/json"]["schema"]
        keys_match(document, schema, reply.json, f"{method} {path} {reply.status_code}")


def ask_for_links(shop: Buyer) -> dict[tuple[str, str, str], TestResponse]:
    """Return a reply of each operation on links, and some that are none of success."""
    bought, topup = shop.create(), Fault.NO_ENDPOINT.value
    link, one = bought.json["data"], "/v1/links/{identifier}"
    return {
        ("/v1/links", "post", ""): bought,
        ("/v1/links", "get", ""): shop.get("/v1/links"),
        (one, "get", ""): shop.read(link),
        (f"{one}/plans", "put", ""): shop.change(link, add=[FREE]),
        (f"{one}/topup-plans", "get", ""): shop.read(link, "/topup-plans"),
        (f"{one}/suspend", "post", ""): shop.post(f"/v1/links/{link['id']}/suspend"),
        (f"{one}/reactivate", "post", ""): shop.post(f"/v1/links/{link['id']}/reactivate"),
        (f"{one}/history", "get", ""): shop.read(link, "/history"),
        (f"{one}/network-status", "get", ""): shop.read(link, "/network-status"),
        ("/v1/links", "post", "wrong"): shop.create(name=1),
        ("/v1/links", "post", "failed"): shop.create(topup),
        (f"{one}/plans", "put", "failed"): shop.change(link, add=[topup]),
        (one, "get", "stale"): shop.read(shop.link(Fault.UNREACHABLE.value)),
    }


def test_the_three_groups_may_live_at_three_addresses(make_service: MakeService) -> None:
    service = make_service(
        AUTH_URL="https://id.example",
        NUMBERS_URL="https://n.example/a",
        BASE_URL="https://b.example",
    )
    paths = service.client.get("/openapi.json").json["paths"]
    assert paths["/auth/token"]["servers"] == [{"url": "https://id.example"}]
    assert paths["/number-lookup"]["servers"] == [{"url": "https://n.example/a"}]
    assert paths["/v1/wallet"]["servers"] == [{"url": "https://b.example"}]
    assert paths["/v1/links"]["servers"] == [{"url": "https://b.example"}]
    assert "servers" not in paths["/livez"]
    reply = service.tenant().create_job(["+14155552671"])
    assert reply.headers["Location"].startswith("https://n.example/a/number-lookup/bulk/")


def test_it_may_be_asked_for_again_for_nothing(service: Service) -> None:
    tag = service.client.get("/openapi.json").headers["ETag"]
    again = service.client.get("/openapi.json", headers={"If-None-Match": tag})
    assert (again.status_code, again.data) == (304, b"")
