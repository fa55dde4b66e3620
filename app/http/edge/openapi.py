"""The OpenAPI document; flask-smorest collects it from the groups of operations."""

from collections.abc import Iterable, Mapping, Sequence
from http import HTTPStatus
from pathlib import Path
from typing import Any

import msgspec
from apispec.ext.marshmallow.openapi import OpenAPIConverter
from flask import Flask
from flask_smorest import Api
from flask_smorest.spec import FlaskPlugin
from flask_smorest.utils import deepupdate
from marshmallow import fields
from msgspec import Struct
from werkzeug.routing import Rule

from app.http.edge.compression import Kept
from app.http.edge.operation import PAYMENTS, Group, Operation
from app.http.edge.problem_docs import ERRORS
from app.http.edge.problems import TOKEN_PATH
from app.http.edge.replies import KNOWN, SCHEMA_REF, header
from app.http.edge.request import REQUEST_ID, below
from app.settings import Settings
from domain.links.esim import ICCID_FORM
from projections.engine.shape import MORE_MAY_COME, NAME, OR, id_of

TITLE = "Carrier Lookup, Plans and Links"
VERSION = "1.0.0"
LICENSE = {"name": "For partners, under their agreement", "identifier": "LicenseRef-Partner"}
DESCRIPTION = Path(__file__).with_name("openapi.md")
GUIDES = "https://api.example/docs"  # Stands in that text for the URL of the guides.
# Whoever asks for all scopes of a scheme gets them, and `deposits` has nobody but by name.
SCOPES = {
    "oauth2": {
        "lookup": "Look up phone numbers.",
        "plans": "Read the data plans.",
        "links": "Buy, read and change links.",
        "wallet": "Read the balance, the transactions, statements, usage and the account.",
        "webhooks": "Say where you are told what happens, and read what you were told.",
    },
    PAYMENTS: {"deposits": "Book payments of partners; for payment services, given by name only."},
}
BASIC = {
    "type": "http",
    "scheme": "basic",
    "description": "client_id and client_secret, at the token endpoint only.",
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
PARAMETERS = {
    **header(  # No pattern, because nothing is refused for it.
        "X-Request-Id",
        "An id of your own (1–128 letters, digits and `._~:/@=+-`, but no phone number, no ICCID, "
        "no secret and no token). It is sent back, stored with what the request causes, and stands "
        "on our log lines. Another one is replaced.",
    ),
    **header(  # With the format `uuid` a generated client sends an object, no text, and fails.
        "X-Organization-Id",
        "The organization to act for. Only read for approved machine-to-machine clients, whose "
        "tokens name no organization.",
        pattern=f"^{UUID_FORM}$",
    ),
    **header(
        "If-None-Match",
        "The `ETag` of a reply that you have: while it stands, the reply is a 304 without a body.",
    ),
}
HEADERS = {
    **header(
        "X-Request-Id",
        "The id of the request: yours, or one that we have made.",
        pattern=REQUEST_ID,
    ),
    **header(
        "RateLimit-Policy",
        "Where your organization has a rate limit: `q` requests within `w` seconds "
        "(draft-ietf-httpapi-ratelimit-headers).",
        pattern='^"default";q=[0-9]+;w=60$',
    ),
    **header(
        "RateLimit",
        "Beside it: `r` more requests may come, and in `t` seconds all of them.",
        pattern='^"default";r=[0-9]+;t=[0-9]+$',
    ),
}
HEADERS["X-Request-Id"]["required"] = True
for name, parameter in PARAMETERS.items():
    parameter |= {"in": "header", "name": name}


class _Api(Api):
    """flask-smorest, without its errors; `create_app` registers the handlers of ours."""

    DEFAULT_ERROR_RESPONSE_NAME = None

    def _register_responses(self) -> None:
        """Describe neither its errors nor its header of pages, which we do not send."""

    _register_pagination_header = _register_responses


class _Paths(FlaskPlugin):
    """Says what the ids of a path are, what all send, and which error replies are the same."""

    def __init__(self, shared: Mapping[str, Any]) -> None:
        super().__init__()
        self._shared = shared  # By the one code of each.

    def rule_to_params(self, rule: Rule) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = super().rule_to_params(rule)
        for each in found:
            thing = each["name"].removesuffix("_id")
            usual = f"The id of the {thing}.", {"format": "uuid"}, id_of(thing)
            each["description"], form, shown = ID_PARAMETERS.get(each["name"], usual)
            each["schema"] = {"type": "string", **form, "examples": [shown]}
        return found

    def operation_helper(self, *, operations: Mapping[str, dict[str, Any]], **_: Any) -> None:
        known = self._shared.values()
        for each in operations.values():
            responses, sent = each["responses"], ["X-Request-Id"]
            sent += ["X-Organization-Id"] if any("oauth2" in of for of in each["security"]) else []
            sent += ["If-None-Match"] if HTTPStatus.NOT_MODIFIED in responses else []
            each["parameters"] = [*each.get("parameters", ()), *sent]
            same = [status for status, response in responses.items() if response in known]
            responses |= {status: responses[status]["x-error-codes"][0] for status in same}


def register(app: Flask, settings: Settings, groups: Sequence[Group]) -> dict[str, Kept]:
    """Register groups of operations with an app; return the OpenAPI document for each root path."""
    app.config.update(API_TITLE=TITLE, API_VERSION=VERSION, OPENAPI_VERSION="3.1.0")
    operations = [each for group in groups for each in group.operations]
    shared = _shared(operations)
    webhooks = {name: sent for group in groups for name, sent in group.webhooks.items()}
    api = _Api(app, spec_kwargs={"flask_plugin": _Paths(shared), "webhooks": webhooks})
    api.ma_plugin.converter.add_attribute_function(_named_apart)
    components = api.spec.components
    components.headers |= HEADERS
    components.parameters |= PARAMETERS
    for code, response in shared.items():
        components.response(code, response)
    replies = {type(shown.example) for each in operations for shown in each.replies}
    for schemas in _schemas_of({*replies, *ERRORS}), *(group.schemas for group in groups):
        components.schemas |= _named(schemas, components.schemas)
    for group in groups:
        api.register_blueprint(group)
    numbers = components.schemas["BulkBody"]["properties"]["phone_numbers"]
    numbers["maxItems"] = settings.bulk_numbers_max
    # Either list may be empty beside the other one; what they hold together is said in words.
    components.schemas["LinkPlansBody"]["minProperties"] = 1
    document = api.spec.to_dict()
    # Sorted, because types come in another order in each process, and their ETags must agree.
    document["components"]["schemas"] = dict(sorted(components.schemas.items()))
    return {
        root: Kept(msgspec.json.encode(deepupdate(document, _frame(document, settings, root))))
        for root in ("", settings.path_prefix)
    }


def _shared(operations: Iterable[Operation]) -> dict[str, Any]:
    """Return an error reply for each code that is alone in one, of organizations if they get it."""
    shared: dict[str, Any] = {}
    for each in sorted(operations, key=lambda each: each.group.scope is not None):
        for response in reversed(each.described["responses"].values()):
            codes = response.get("x-error-codes", ())
            if len(codes) == 1:
                shared[codes[0]] = response
    return shared


def _frame(document: Mapping[str, Any], settings: Settings, root: str) -> dict[str, Any]:
    """Return what stands around the operations, with URLs for clients who reach us below `root`."""
    # Without PUBLIC_URL the URLs are relative, so the document is valid on any host.
    auth = settings.auth_url or settings.public_url
    flow = {"tokenUrl": (below(auth, root) if auth else root) + TOKEN_PATH}
    schemes = {
        name: {"type": "oauth2", "flows": {"clientCredentials": {**flow, "scopes": scopes}}}
        for name, scopes in SCOPES.items()
    }
    here = below(settings.public, root) if settings.public_url else root or "/"
    guides = f"{here.rstrip('/')}/docs"
    email = {"email": settings.contact_email} if settings.contact_email else {}
    urls = {"/auth/": settings.auth, "/.well-known/": settings.auth, "/v1/": settings.base}
    urls |= {"/number-lookup": settings.numbers}
    elsewhere = {
        path: {"servers": [{"url": below(url, root)}]}
        for start, url in urls.items()
        for path in document["paths"]
        if path.startswith(start) and url != settings.public
    }
    return {
        "info": {
            "description": DESCRIPTION.read_text("utf-8").replace(GUIDES, guides),
            "contact": {"name": "Partner support", **email},
            "license": LICENSE,
        },
        "servers": [{"url": here}],
        "paths": elsewhere,
        "components": {"securitySchemes": {**schemes, "basic": BASIC}},
        # Unlike the others, this one must not be relative.
        "externalDocs": {"description": "Guides", "url": f"{below(settings.public, root)}/docs"},
    }


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


def _named_apart(converter: OpenAPIConverter, _: fields.Field[Any], ret: dict[str, Any]) -> Any:
    """Complete what apispec says of a field; see `add_attribute_function`."""
    told = _named(ret, converter.spec.components.schemas)
    ret.clear()
    return told


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
