"""The OpenAPI document says all that a partner needs, and what it says is so."""

import re
from collections.abc import Iterator
from typing import Any
from uuid import uuid4

import pytest
from marshmallow import ValidationError
from phonenumbers import SUPPORTED_REGIONS, is_mobile_number_portable_region

from app.http.docs import GUIDES
from app.http.edge.input import Text
from app.http.links.input import LinkPlansBody
from app.http.lookups.replies import Carrier as CarrierReply
from app.http.lookups.replies import NumberResult
from domain.lookups.ports import Carrier, NumberFacts
from domain.webhooks.messages import TEST, TYPES
from tests.app.http.conftest import MakeService
from tests.app.http.json_schema import problems, resolve
from tests.app.http.service import Service, Tenant
from tests.docs.errors_page import rows
from tests.docs.test_webhooks_guide import shown

OF = "Account Action Bulk Clock Deposit Failure Lookup Link LinkPlans PlayMoney Redeliver Rename"
BODIES = {f"{each}Body" for each in [*OF.split(), "Webhook", "Rotate", "Handover"]} | {
    "WebhookChanges",
    "TokenForm",
}
METHODS = {"get", "post", "put", "patch", "delete"}
NO_TOKEN = {"/auth/token", "/number-lookup/health", "/livez", "/readyz"}
NO_TOKEN |= {f"/.well-known/{name}" for name in ("jwks.json", "oauth-authorization-server")}


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


def test_every_route_of_the_app_is_described(service: Service, document: dict[str, Any]) -> None:
    aside = {"/", "/openapi.json", "/llms.txt", "/docs", "/docs/", "/docs/{name}"}
    aside.add("/.well-known/oauth-authorization-server/{issuer_path}")
    aside.add("/networks/{name}/notifications")  # For networks and not for partners.
    aside |= {"/e/{address}", "/e/{address}/qr.png"}  # For travellers.
    routes = {
        (re.sub(r"<(?:path:)?(\w+)>", r"{\1}", rule.rule), method.lower())
        for rule in service.app.url_map.iter_rules()
        for method in rule.methods or ()
        if method not in {"HEAD", "OPTIONS"}
    }
    described = {(path, method) for path, method, _ in operations(document)}
    assert {route for route in routes if route[0] not in aside} == described


def test_every_operation_is_told_in_words_and_all_but_the_open_need_a_token(
    document: dict[str, Any],
) -> None:
    tags = {tag["name"]: tag["description"] for tag in document["tags"]}
    named = set()
    for path, method, its in operations(document):
        words = [its["summary"], its["description"], *(tags[each] for each in its["tags"])]
        assert all(words), (path, method)
        scopes = {(name, *of) for each in its["security"] for name, of in each.items() if of}
        assert bool(scopes) == (path not in NO_TOKEN), path
        named |= scopes
    for name in ("oauth2", "payments"):
        flow = document["components"]["securitySchemes"][name]["flows"]["clientCredentials"]
        assert {scope for kind, scope in named if kind == name} == flow["scopes"].keys()


def test_every_field_is_told_in_words(document: dict[str, Any]) -> None:
    silent = [
        f"{name}.{field}"
        for name, schema in document["components"]["schemas"].items()
        for field, facts in schema.get("properties", {}).items()
        if not {"description", "enum", "$ref", "format", "items", "anyOf"} & facts.keys()
    ]
    assert silent == []


def test_every_process_tells_of_the_schemas_in_one_order(document: dict[str, Any]) -> None:
    """It is collected from sets of types, and its ETag is made of its bytes."""
    names = [*document["components"]["schemas"]]
    assert names == sorted(names)


def test_the_carrier_is_described_honestly(document: dict[str, Any]) -> None:
    carrier = document["components"]["schemas"]["Carrier"]["properties"]
    portable = sum(is_mobile_number_portable_region(each) for each in SUPPORTED_REGIONS)
    told = f"{portable} of {len(SUPPORTED_REGIONS)} regions"
    assert told in carrier["name"]["description"]
    assert told in document["info"]["description"]
    assert "exactly one network" in carrier["mnc"]["description"]


def test_the_guide_names_what_the_document_tells_of_webhooks(document: dict[str, Any]) -> None:
    described = document["webhooks"]
    assert described.keys() == {*TYPES, TEST}
    for name, fields in shown().items():
        body = described[name]["post"]["requestBody"]["content"]["application/json"]["schema"]
        data = resolve(document, resolve(document, body)["properties"]["data"])
        assert data["required"] == [*fields, "position"], name
        assert {*data["properties"]} - {*data["required"], "plans"} == set(), name


def test_the_facts_of_a_number_are_described_by_the_names_that_they_are_sent_by() -> None:
    assert NumberFacts.__struct_fields__ == NumberResult.__struct_fields__
    assert Carrier.__struct_fields__ == CarrierReply.__struct_fields__


def replies(document: dict[str, Any]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    for path, method, operation in operations(document):
        for status, response in operation["responses"].items():
            yield f"{method} {path}", status, resolve(document, response)


def parameters(document: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    for path, method, operation in operations(document):
        for each in operation.get("parameters", []):
            yield f"{method} {path}", resolve(document, each)


def schemas_within(part: Any) -> Iterator[dict[str, Any]]:
    """Find every schema below a schema, and itself."""
    if isinstance(part, dict):
        yield part
        inner = [*part.get("properties", {}).values(), *part.get("anyOf", [])]
        for each in (*inner, part.get("items"), part.get("additionalProperties")):
            yield from schemas_within(each)


def test_every_example_is_what_its_schema_says(document: dict[str, Any]) -> None:
    media = [
        each for _, _, reply in replies(document) for each in reply.get("content", {}).values()
    ]
    for _, _, operation in operations(document):
        media += operation.get("requestBody", {}).get("content", {}).values()
    for each in {id(each): each for each in media}.values():  # Many replies share theirs.
        values = [shown["value"] for shown in each.get("examples", {}).values()]
        values += [each["example"]] if "example" in each else []
        assert values, each["schema"]
        for value in values:
            assert not [*problems(document, each["schema"], value)]
    shown = [each["schema"] for _, each in parameters(document)]
    for schema in (*document["components"]["schemas"].values(), *shown):
        for within in schemas_within(schema):
            for value in within.get("examples", []):
                assert not [*problems(document, within, value)]


def test_an_operation_lists_its_error_codes_and_says_that_more_may_come(
    document: dict[str, Any],
) -> None:
    known = document["components"]["schemas"]["KnownErrorCode"]["enum"]
    listed = set()
    for place, status, reply in replies(document):
        if "x-error-codes" not in reply or place == "post /auth/token":
            continue
        examples = reply["content"]["application/json"].get("examples")
        assert examples is None or reply["x-error-codes"] == [*examples], place
        listed |= {(status, each) for each in reply["x-error-codes"]}
    told = {(str(row.status), row.code) for row in rows()}
    assert told - listed == {("405", "METHOD_NOT_ALLOWED")}
    assert listed <= told
    assert {each for _, each in told} == {*known}


@pytest.mark.parametrize("name", ["status", "kind", "reason"])
def test_values_that_may_grow_are_open_in_replies(document: dict[str, Any], name: str) -> None:
    schemas = document["components"]["schemas"].values()
    found = [each["properties"][name] for each in schemas if name in each.get("properties", {})]
    found = [each for each in found if each != {"type": "string"}]
    assert found
    for each in found:
        named = next((part for part in each.get("anyOf", ()) if "$ref" in part), each)
        known, other = resolve(document, named)["anyOf"]
        assert (set(known), other) == ({"$ref"}, {"type": "string"}), each


def test_what_clients_generate_has_a_name_of_ours(document: dict[str, Any]) -> None:
    """An object or an enumeration in place would be named by where it stands, and many times."""
    for name, schema in document["components"]["schemas"].items():
        for within in schemas_within(schema):
            is_constant = len(within.get("enum", [])) == 1
            in_place = within is not schema and ({"enum"} & within.keys() or "properties" in within)
            assert is_constant or not in_place, (name, within)
            assert not {"oneOf", "allOf", "nullable", "example"} & within.keys(), name
    for place, parameter in parameters(document):
        assert "enum" not in parameter["schema"], place


def test_a_generated_client_can_leave_out_and_send_what_it_may(document: dict[str, Any]) -> None:
    """A field with a default becomes one that is demanded, a header with a format no text."""
    components = document["components"]
    schemas = components["schemas"].values()
    fields = [each for schema in schemas for each in schema.get("properties", {}).values()]
    assert [each for each in fields if "default" in each] == []
    headers = [each["schema"] for each in components["parameters"].values()]
    assert [each for each in headers if "format" in each] == []


def test_a_bound_of_what_may_be_sent_has_its_row_among_the_limits(document: dict[str, Any]) -> None:
    sent = [(each["name"], each["schema"]) for _, each in parameters(document)]
    schemas = document["components"]["schemas"]
    assert {n for n, each in schemas.items() if each.get("additionalProperties") is False} == BODIES
    bodies = (schemas[name] for name in BODIES)
    sent += [field for body in bodies for field in body["properties"].items()]
    rows = (GUIDES / "limits.md").read_text("utf-8").splitlines()
    bounds = {
        (name, str(value))
        for name, schema in sent
        for keyword, value in schema.items()
        if keyword in {"maxLength", "maxItems", "maximum"}
    }
    assert bounds >= {("per_page", "100"), ("name", "255"), ("add", "10")}
    for name, value in bounds:
        row = next((each for each in rows if each.startswith("|") and f"`{name}`" in each), "")
        assert f"| {value} " in row, (name, value)


def test_a_read_that_can_be_304_takes_and_gives_the_tag(document: dict[str, Any]) -> None:
    conditional = 0
    for path, _, operation in operations(document):
        takes = {"$ref": "#/components/parameters/If-None-Match"} in operation["parameters"]
        headers = {code: it.get("headers", {}) for code, it in operation["responses"].items()}
        gives = [code for code, its in headers.items() if "ETag" in its]
        assert gives == (["200", "304"] if takes else []), path
        conditional += takes
    assert conditional == 5


def test_no_reply_tells_what_a_provider_takes(document: dict[str, Any]) -> None:
    # Every reply of every test is held to the document, so what it lacks is in no reply.
    parts = document["components"]["schemas"].values()
    schemas = [schema for part in parts for schema in schemas_within(part)]
    named = {name for schema in schemas for name in schema.get("properties", ())}
    assert {"amount", "balance"} <= named
    # The source's name for what the partner itself pays.
    assert {name for name in named if "cost" in name or "margin" in name} == {"partner_cost"}


def test_links_lead_from_a_reply_to_an_operation(document: dict[str, Any]) -> None:
    named = {o["operationId"]: (document["paths"][path], o) for path, _, o in operations(document)}
    followed = set()
    for _, _, reply in replies(document):
        for link in reply.get("links", {}).values():
            path, _ = named[link["operationId"]]
            ((name, expression),) = link["parameters"].items()
            (parameter,) = [each for each in path["parameters"] if each["name"] == name]
            value = reply["content"]["application/json"]["example"]
            for key in expression.removeprefix("$response.body#/").split("/"):
                value = value[int(key)] if isinstance(value, list) else value[key]
            assert parameter["schema"]["examples"] == [value], "an example that leads elsewhere"
            followed.add(link["operationId"])
    needing = {name for name, (path, _) in named.items() if "parameters" in path}
    # To read or redeliver one delivery takes two ids; play is told only where it can be.
    assert needing - followed == {"reactivate_link", "read_delivery", "redeliver", "play_link"}


FILTERS = {"from", "to", "kind", "reference", "region", "country", "coverage_type"}
FILTERS |= {"changed_since", "sponsor_profile", "status", "search", "max_price", "sort"}
FILTERS |= {"created_from", "created_to", "plan_id", "expires_before"}


def test_a_filter_may_be_empty_and_holds_no_nul(document: dict[str, Any], acme: Tenant) -> None:
    seen = set()
    for place, parameter in parameters(document):
        name, schema = parameter["name"], parameter["schema"]
        path = re.sub("{[a-z_]+}", "none", place.removeprefix("get "))
        if parameter["in"] == "query" and path.startswith("/") and "none" not in path:
            refused = acme.get(path, query_string={name: ""}).status_code == 422
            assert refused == any(problems(document, schema, "")), name
        if name not in FILTERS or parameter.get("required"):
            continue
        assert not [*problems(document, schema, "")], name
        assert [*problems(document, schema, "a\0")], name
        if path != place and "none" not in path:
            assert acme.get(path, query_string={name: "a\0"}).status_code == 422
        seen.add(name)
    assert seen == FILTERS


def entries(count: int) -> list[str]:
    return [str(uuid4()) for _ in range(count)]


def test_the_schema_of_a_change_refuses_nothing_that_the_server_takes(
    document: dict[str, Any],
) -> None:
    schema = document["components"]["schemas"]["LinkPlansBody"]
    both, server = {"schema", "server"}, {"server"}
    table: list[tuple[dict[str, list[str]], set[str]]] = [
        ({}, both),
        ({"remove": [], "add": []}, server),
        ({"remove": []}, server),
        ({"add": entries(1)}, set()),
        ({"remove": [], "add": entries(1)}, set()),
        ({"remove": entries(1), "add": []}, set()),
        ({"remove": entries(10)}, set()),
        ({"remove": entries(11)}, both),
        ({"remove": entries(4), "add": entries(6)}, set()),
        ({"remove": entries(5), "add": entries(6)}, server),
        ({"remove": entries(1) * 2}, both),
        ({"add": entries(1) * 2}, set()),
    ]
    for body, refused_by in table:
        found = {"schema"} if [*problems(document, schema, body)] else set()
        try:
            LinkPlansBody().load(body)
        except ValidationError:
            found.add("server")
        assert found == refused_by, body


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


def test_generators_read_a_file_as_text_whatever_its_format(document: dict[str, Any]) -> None:
    """They take the first type that they know, and would fail at a table that is no JSON."""
    results = document["paths"]["/number-lookup/bulk/{job_id}/results"]["get"]
    types = [*results["responses"]["200"]["content"]]
    assert types[0] == "text/csv"
    assert "application/json" in types
    transactions = document["paths"]["/v1/transactions"]["get"]["responses"]["200"]["content"]
    assert [*transactions] == ["application/json", "text/csv"]


def test_a_misspelt_word_of_a_field_ends_the_start() -> None:
    with pytest.raises(TypeError, match="requird"):
        Text("A number.", requird=True)
