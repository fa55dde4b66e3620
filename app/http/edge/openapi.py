"""The OpenAPI document; flask-smorest collects it from the blueprints."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import msgspec
from flask import Flask, Response
from flask_smorest import Api
from msgspec import Struct
from werkzeug.exceptions import HTTPException

from app.http.edge.errors import answer_http
from app.http.edge.input import SCHEMA_REF, Blueprint
from app.http.edge.oauth_errors import TOKEN_PATH
from app.http.edge.paths import below
from app.http.edge.problem_docs import ERRORS
from app.settings import Settings

TITLE = "Carrier Lookup, Plans and Links"
VERSION = "1.0.0"
DESCRIPTION = Path(__file__).with_name("openapi.md")

SCOPES = {
    "lookup": "Look up phone numbers.",
    "plans": "Read the data plans.",
    "links": "Buy, read and change links.",
    "wallet": "Read the balance and the transactions.",
}
ID_PARAMETERS = {
    "identifier": "The id of the link, or its ICCID (18 to 22 digits).",
    "job_id": "The id of the job.",
    "plan_id": "The id of the plan.",
    "transaction_id": "The id of the transaction.",
}
COMMON_HEADERS = {
    "X-Request-Id": "An id of your own (1–128 letters, digits and `._~:/@=+-`). It is sent back, "
    "stored with what the request causes, and stands on our log lines.",
    "X-Organization-Id": "The organization to act for. Only read for approved machine-to-machine "
    "clients, whose tokens name no organization.",
}
HTTP_METHODS = {"get", "post", "put", "delete"}


class _Api(Api):
    """flask-smorest, with our errors in place of its own."""

    DEFAULT_ERROR_RESPONSE_NAME = None

    def handle_http_exception(self, error: HTTPException) -> Response:
        """Answer in our envelope and keep `Allow`, which flask-smorest would drop."""
        return answer_http(error)


def register(app: Flask, settings: Settings, blueprints: Sequence[Blueprint]) -> dict[str, bytes]:
    """Register blueprints with an app; return the OpenAPI document for each root path."""
    app.config.update(API_TITLE=TITLE, API_VERSION=VERSION, OPENAPI_VERSION="3.0.3")
    api = _Api(app, spec_kwargs={"info": {"description": DESCRIPTION.read_text("utf-8")}})
    _add_security(api)
    for blueprint in blueprints:
        api.register_blueprint(blueprint)
    document = api.spec.to_dict()
    schemas = document["components"]["schemas"]
    del schemas["PaginationMetadata"]  # It describes a header that we do not send.
    replies = {kind for each in blueprints for kind in each.reply_types}
    schemas |= _schemas_of({*replies, *ERRORS})
    for operations in document["paths"].values():
        _complete(operations)
    return {root: _encoded(document, settings, root) for root in ("", settings.path_prefix)}


def _encoded(document: dict[str, Any], settings: Settings, root: str) -> bytes:
    """Return the document for clients that reach us below `root`, because it holds URLs."""
    flows = document["components"]["securitySchemes"]["oauth2"]["flows"]
    # Without PUBLIC_URL the document is valid under whatever name it was read.
    auth = settings.auth_url or settings.public_url
    flows["clientCredentials"]["tokenUrl"] = (below(auth, root) if auth else root) + TOKEN_PATH
    here = below(settings.public, root) if settings.public_url else root or "/"
    document["servers"] = [{"url": here}]
    for path, operations in document["paths"].items():
        server = _server_of(path, settings)
        if server != settings.public:
            operations["servers"] = [{"url": below(server, root)}]
    return msgspec.json.encode(document)


def _add_security(api: _Api) -> None:
    flow = {"tokenUrl": TOKEN_PATH, "scopes": SCOPES}
    schemes = api.spec.components
    schemes.security_scheme("oauth2", {"type": "oauth2", "flows": {"clientCredentials": flow}})
    schemes.security_scheme(
        "basic",
        {
            "type": "http",
            "scheme": "basic",
            "description": "client_id and client_secret, at the token endpoint only.",
        },
    )


def _complete(operations: dict[str, Any]) -> None:
    """Add what follows from the path: its ids, and the headers that every caller sends."""
    for parameter in operations.get("parameters", []):
        parameter["description"] = ID_PARAMETERS[parameter["name"]]
        is_uuid = parameter["name"].endswith("_id")
        parameter["schema"] = {"type": "string", **({"format": "uuid"} if is_uuid else {})}
    for method in HTTP_METHODS & operations.keys():
        operation = operations[method]
        operation["responses"] = dict(sorted(operation["responses"].items()))
        if any("oauth2" in scheme for scheme in operation["security"]):
            headers = [_header(name, text) for name, text in COMMON_HEADERS.items()]
            operation["parameters"] = [*operation.get("parameters", []), *headers]


def _schemas_of(replies: Iterable[type[Struct]]) -> dict[str, Any]:
    """Return the schemas of these replies and of all types within them, by name."""
    _, found = msgspec.json.schema_components(replies, ref_template=SCHEMA_REF)
    return {
        name: {
            "type": "object",
            "properties": {field: _in_3_0(each) for field, each in schema["properties"].items()},
            **_required(schema),
        }
        for name, schema in found.items()
    }


def _required(schema: dict[str, Any]) -> dict[str, list[str]]:
    """Return the fields that are always sent: those without a default, and constant ones."""
    constants = [name for name, each in schema["properties"].items() if "default" in each]
    always = sorted([*schema["required"], *constants])
    return {"required": always} if always else {}


def _in_3_0(schema: dict[str, Any]) -> dict[str, Any]:
    """Return a JSON Schema of msgspec in the dialect of OpenAPI 3.0."""
    told = {name: value for name, value in schema.items() if name != "default"}
    if "examples" in told:
        (told["example"],) = told.pop("examples")
    if "anyOf" in told:  # A type or null, in this order.
        given, _ = told.pop("anyOf")
        if "$ref" in given:
            told["anyOf"] = [given, {"type": "object", "nullable": True}]
        else:
            told = {**_in_3_0(given), **told, "nullable": True}
    if "items" in told:
        told["items"] = _in_3_0(told["items"])
    if told.get("type") == "object":
        told["additionalProperties"] = _in_3_0(told.get("additionalProperties", {}))
    if "$ref" in told and len(told) > 1:  # OpenAPI 3.0 allows nothing beside a reference.
        told["allOf"] = [{"$ref": told.pop("$ref")}]
    return told


def _server_of(path: str, settings: Settings) -> str:
    groups = {
        "/auth/": settings.auth,
        "/.well-known/": settings.auth,
        "/number-lookup": settings.numbers,
        "/v1/": settings.base,
    }
    return next((url for start, url in groups.items() if path.startswith(start)), settings.public)


def _header(name: str, description: str) -> dict[str, Any]:
    return {"in": "header", "name": name, "description": description, "schema": {"type": "string"}}
