"""The OpenAPI document; flask-smorest collects it from the blueprints."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
from flask import Flask
from flask_smorest import Api
from msgspec import Struct

from app.http.edge.compression import Kept
from app.http.edge.operation import PAYMENTS, Group
from app.http.edge.problem_docs import ERRORS
from app.http.edge.problems import TOKEN_PATH
from app.http.edge.replies import KNOWN, SCHEMA_REF
from app.http.edge.request import REQUEST_ID, below
from app.settings import Settings
from domain.links.esim import ICCID_FORM
from projections.engine.shape import MORE_MAY_COME, NAME, OR, id_of

TITLE = "Carrier Lookup, Plans and Links"
VERSION = "1.0.0"
LICENSE = {"name": "For partners, under their agreement", "identifier": "LicenseRef-Partner"}
DESCRIPTION = Path(__file__).with_name("openapi.md")
GUIDES = "https://api.example/docs"  # Stands in that text for the URL of the guides.

DEPOSITS = {"deposits": "Book payments of partners; for payment services, given by name only."}
SCOPES = {
    "lookup": "Look up phone numbers.",
    "plans": "Read the data plans.",
    "links": "Buy, read and change links.",
    "wallet": "Read the balance, the transactions, statements, usage and the account.",
    "webhooks": "Say where you are told what happens, and read what you were told.",
}
UUID_FORM = "[0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}"
# The ids in paths whose name does not say all: what it is, its form, an example.
ID_PARAMETERS: Mapping[str, tuple[str, dict[str, str], str]] = {
    "identifier": (
        "The id of the link, or its ICCID (18 to 22 digits).",
        {"pattern": f"^({ICCID_FORM}|{UUID_FORM})$"},
        id_of("link"),
    ),
    "month": ("The month (UTC).", {"pattern": "^[0-9]{4}-(0[1-9]|1[0-2])$"}, "2026-11"),
    "request_id": ("The id of the request, from its 202.", {"format": "uuid"}, id_of("link")),
    "webhook_id": ("The id of the endpoint.", {"format": "uuid"}, id_of("webhook")),
}
REQUEST_HEADERS: Mapping[str, dict[str, Any]] = {
    "X-Request-Id": {
        "description": "An id of your own (1–128 letters, digits and `._~:/@=+-`, but no phone "
        "number, no ICCID, no secret and no token). It is sent back, stored with what the request "
        "causes, and stands on our log lines. Another one is replaced.",
        "schema": {"type": "string"},  # No pattern, because nothing is refused for it.
    },
    "X-Organization-Id": {
        "description": "The organization to act for. Only read for approved machine-to-machine "
        "clients, whose tokens name no organization.",
        # With the format `uuid` a generated client sends an object that is no text, and fails.
        "schema": {
            "type": "string",
            "pattern": f"^{UUID_FORM}$",
        },
    },
    "If-None-Match": {
        "description": "The `ETag` of a reply that you have: while it stands, the reply is a 304 "
        "without a body.",
        "schema": {"type": "string"},
    },
}
REPLY_HEADERS = {
    "X-Request-Id": {
        "description": "The id of the request: yours, or one that we have made.",
        "required": True,
        "schema": {"type": "string", "pattern": REQUEST_ID},
    }
}
LIMIT_HEADERS = {
    "RateLimit-Policy": {
        "description": "Where your organization has a rate limit: `q` requests within `w` seconds "
        "(draft-ietf-httpapi-ratelimit-headers).",
        "schema": {"type": "string", "pattern": '^"default";q=[0-9]+;w=60$'},
    },
    "RateLimit": {
        "description": "Beside it: `r` more requests may come, and in `t` seconds all of them.",
        "schema": {"type": "string", "pattern": '^"default";r=[0-9]+;t=[0-9]+$'},
    },
}
HTTP_METHODS = {"get", "post", "put", "patch", "delete"}


class _Api(Api):
    """flask-smorest, without its errors; `create_app` registers the handlers of ours."""

    DEFAULT_ERROR_RESPONSE_NAME = None


def register(app: Flask, settings: Settings, groups: Sequence[Group]) -> dict[str, Kept]:
    """Register groups of operations with an app; return the OpenAPI document for each root path."""
    app.config.update(API_TITLE=TITLE, API_VERSION=VERSION, OPENAPI_VERSION="3.1.0")
    api = _Api(app, spec_kwargs={"info": _info(settings)})
    _add_security(api)
    for group in groups:
        api.register_blueprint(group)
    document = api.spec.to_dict()
    schemas = document["components"]["schemas"]
    del schemas["PaginationMetadata"]  # It describes a header that we do not send.
    operations = [each for group in groups for each in group.operations]
    replies = {type(shown.example) for each in operations for shown in each.replies}
    schemas |= _schemas_of({*replies, *ERRORS})
    document["webhooks"] = {}
    for group in groups:
        schemas |= group.schemas
        document["webhooks"] |= group.webhooks
    for body in {each.body for each in operations if each.body is not None}:
        schemas.get(body.__name__, {}).update(getattr(body, "in_document", {}))
    schemas["BulkBody"]["properties"]["phone_numbers"]["maxItems"] = settings.bulk_numbers_max
    for members in document["paths"].values():
        _complete(members)
    document["components"] |= {
        "headers": REPLY_HEADERS | LIMIT_HEADERS,
        "parameters": {
            name: {"in": "header", "name": name, **facts} for name, facts in REQUEST_HEADERS.items()
        },
        "responses": _shared(document["paths"]),
    }
    document = _named(document, found := dict[str, Any]())
    # Sorted, because types come in another order in each process, and their ETags must agree.
    found |= document["components"]["schemas"]
    document["components"]["schemas"] = dict(sorted(found.items()))
    return {root: _encoded(document, settings, root) for root in ("", settings.path_prefix)}


def _info(settings: Settings) -> dict[str, Any]:
    email = {"email": settings.contact_email} if settings.contact_email else {}
    return {
        "contact": {"name": "Partner support", **email},
        "license": LICENSE,
    }


def _encoded(document: dict[str, Any], settings: Settings, root: str) -> Kept:
    """Return the document with its URLs as clients see them who reach us below `root`."""
    # Without PUBLIC_URL the URLs are relative, so the document is valid on any host.
    auth = settings.auth_url or settings.public_url
    token_url = (below(auth, root) if auth else root) + TOKEN_PATH
    for scheme in ("oauth2", PAYMENTS):
        flows = document["components"]["securitySchemes"][scheme]["flows"]
        flows["clientCredentials"]["tokenUrl"] = token_url
    here = below(settings.public, root) if settings.public_url else root or "/"
    document["servers"] = [{"url": here}]
    guides = f"{here.rstrip('/')}/docs"
    document["info"]["description"] = DESCRIPTION.read_text("utf-8").replace(GUIDES, guides)
    # Unlike the others, this one must not be relative.
    document["externalDocs"] = {
        "description": "Guides",
        "url": f"{below(settings.public, root)}/docs",
    }
    for path, operations in document["paths"].items():
        server = _server_of(path, settings)
        if server != settings.public:
            operations["servers"] = [{"url": below(server, root)}]
    return Kept(msgspec.json.encode(document))


def _add_security(api: _Api) -> None:
    schemes = api.spec.components
    # Whoever asks for all scopes of a scheme gets them, and `deposits` has nobody but by name.
    for name, scopes in (("oauth2", SCOPES), (PAYMENTS, DEPOSITS)):
        flow = {"tokenUrl": TOKEN_PATH, "scopes": scopes}
        schemes.security_scheme(name, {"type": "oauth2", "flows": {"clientCredentials": flow}})
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
        thing = parameter["name"].removesuffix("_id")
        usual = f"The id of the {thing}.", {"format": "uuid"}, id_of(thing)
        parameter["description"], form, shown = ID_PARAMETERS.get(parameter["name"], usual)
        parameter["schema"] = {"type": "string", **form, "examples": [shown]}
    for method in sorted(HTTP_METHODS & operations.keys()):
        operation = operations[method]
        responses = operation["responses"] = dict(sorted(operation["responses"].items()))
        # Only callers that act for an organization have this scheme and are rate-limited.
        for_organization = any("oauth2" in scheme for scheme in operation["security"])
        sent_back = [*REPLY_HEADERS, *(LIMIT_HEADERS if for_organization else ())]
        for response in responses.values():
            named = {name: {"$ref": f"#/components/headers/{name}"} for name in sent_back}
            response["headers"] = named | response.get("headers", {})
        names = ["X-Request-Id"]
        names += ["X-Organization-Id"] if for_organization else []
        names += ["If-None-Match"] if "304" in responses else []
        sent = [{"$ref": f"#/components/parameters/{name}"} for name in names]
        operation["parameters"] = [*operation.get("parameters", []), *sent]


def _schemas_of(replies: Iterable[type[Struct]]) -> dict[str, Any]:
    """Return the schemas of these replies and of all types within them, by name."""
    _, found = msgspec.json.schema_components(replies, ref_template=SCHEMA_REF)
    for schema in found.values():
        del schema["title"]  # It repeats the name.
        constants = [name for name, each in schema["properties"].items() if "default" in each]
        for name in constants:  # They are always sent.
            del schema["properties"][name]["default"]
        schema["required"] = [*constants, *schema["required"]]
    return found


def _shared(paths: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """Replace error replies that operations share by references; return them by error code."""
    shared: dict[str, Any] = {}
    for operations in reversed(paths.values()):  # Those of organizations, which are most, first.
        for method in sorted(HTTP_METHODS & operations.keys()):
            responses = operations[method]["responses"]
            for status, response in responses.items():
                codes = [
                    *response.get("content", {}).get("application/json", {}).get("examples", ())
                ]
                if len(codes) == 1 and shared.setdefault(codes[0], response) == response:
                    responses[status] = {"$ref": f"#/components/responses/{codes[0]}"}
    return shared


def _named(part: Any, schemas: dict[str, Any]) -> Any:
    """Return a part of the document; its named schemas are moved to `schemas` and referred to.

    From an inline enumeration, generators make one type for each place where it stands.
    """
    if isinstance(part, list):
        return [_named(each, schemas) for each in part]
    if not isinstance(part, dict):
        return part
    told = {name: _named(each, schemas) for name, each in part.items()}
    if NAME not in told:
        return told
    name, others = told.pop(NAME), told.pop(OR, [])
    around = {key: told.pop(key) for key in ("description", "examples", "default") if key in told}
    if others == [MORE_MAY_COME]:  # Both schemas get names, or generators would make one up.
        schemas[KNOWN + name] = told
        told = {"anyOf": [{"$ref": SCHEMA_REF.format(name=KNOWN + name)}, *others]}
        others = []
    schemas[name] = told
    reference = {"$ref": SCHEMA_REF.format(name=name)}
    return around | ({"anyOf": [reference, *others]} if others else reference)


def _server_of(path: str, settings: Settings) -> str:
    groups = {
        "/auth/": settings.auth,
        "/.well-known/": settings.auth,
        "/number-lookup": settings.numbers,
        "/v1/": settings.base,
    }
    return next((url for start, url in groups.items() if path.startswith(start)), settings.public)
