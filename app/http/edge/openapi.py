"""The OpenAPI document; flask-smorest collects it from the groups of operations."""

from collections.abc import Iterable, Sequence
from http import HTTPStatus
from pathlib import Path
from typing import Any

import msgspec
from apispec import APISpec, BasePlugin
from flask import Flask
from flask_smorest import Api

from app.http.edge.callers import schemes
from app.http.edge.compression import Cached
from app.http.edge.operation import Group, Operation
from app.http.edge.problem_docs import ERRORS
from app.http.edge.problems import TOKEN_PATH
from app.http.edge.replies import HEADERS, PARAMETERS
from app.http.edge.request import below
from app.http.edge.schemas import named, schemas_of
from app.settings import Settings

FACTS = {"title": "Carrier Lookup, Plans and Links", "version": "1.0.0", "openapi_version": "3.1.0"}
LICENSE = {"name": "For partners, under their agreement", "identifier": "LicenseRef-Partner"}
DESCRIPTION = Path(__file__).with_name("openapi.md")
GUIDES = "https://api.example/docs"  # Stands in that text for the URL of the guides.


class DocumentedApi(Api):
    """flask-smorest, without its errors; `create_app` registers the handlers of ours."""

    DEFAULT_ERROR_RESPONSE_NAME = None

    def _register_responses(self) -> None:
        """Describe neither its errors nor its header of pages, which we do not send."""

    _register_pagination_header = _register_responses


class Components(BasePlugin):
    """For apispec: what stands in many places becomes a component, and they refer to it."""

    def __init__(self, operations: Iterable[Operation]) -> None:
        # Error replies by the one code of each; those of organizations, if they get it, are last.
        self._errors: dict[str, Any] = {}
        for each in sorted(operations, key=lambda each: each.group.scope is not None):
            for response in reversed(each.described["responses"].values()):
                if len(codes := response.get("x-error-codes", ())) == 1:
                    self._errors[codes[0]] = response

    def init_spec(self, spec: APISpec) -> None:
        self._schemas = spec.components.schemas
        for code, response in self._errors.items():
            spec.components.response(code, response)

    def schema_helper(self, name: str, definition: Any, **_: Any) -> Any:  # noqa: ARG002  # Of apispec.
        return named(definition, self._schemas)

    def operation_helper(self, path: Any = None, operations: Any = None, **_: Any) -> None:  # noqa: ARG002  # Of apispec.
        for each in operations.values():
            responses, sent = each["responses"], ["X-Request-Id"]
            sent += ["X-Organization-Id"] if any("oauth2" in of for of in each["security"]) else []
            sent += ["If-None-Match"] if HTTPStatus.NOT_MODIFIED in responses else []
            each["parameters"] = [*named(each.get("parameters", []), self._schemas), *sent]
            for status, response in responses.items():
                if response in self._errors.values():
                    responses[status] = response["x-error-codes"][0]


def register(app: Flask, settings: Settings, groups: Sequence[Group]) -> dict[str, Cached]:
    """Register groups of operations with an app; return the OpenAPI document for each root path."""
    operations = [each for group in groups for each in group.operations]
    facts = {**FACTS, "webhooks": {k: v for group in groups for k, v in group.webhooks.items()}}
    api = DocumentedApi(app, spec_kwargs={**facts, "extra_plugins": [Components(operations)]})
    replies = {type(shown.example) for each in operations for shown in each.replies}
    for schemas in schemas_of({*replies, *ERRORS}), *(group.schemas for group in groups):
        for name, schema in schemas.items():
            api.spec.components.schema(name, schema)
    for group in groups:
        api.register_blueprint(group)
    paths, documents = [*api.spec.to_dict()["paths"]], {}
    for root in {"", settings.path_prefix}:
        api.spec.options |= _options(paths, settings, root)
        document = api.spec.to_dict()
        # Types come in another order in each process, and ETags of the document must agree.
        document["components"]["schemas"] = dict(sorted(document["components"]["schemas"].items()))
        documents[root] = Cached(msgspec.json.encode(document))
    return documents


def _options(paths: Iterable[str], settings: Settings, root: str) -> dict[str, Any]:
    """Return what stands around the operations, with URLs for clients who reach us below `root`."""
    # Without PUBLIC_URL the URLs are relative, so the document is valid on any host.
    public, auth = settings.public_url, settings.auth_url or settings.public_url
    here = below(public, root) if public else root or "/"
    text = DESCRIPTION.read_text("utf-8").replace(GUIDES, f"{here.rstrip('/')}/docs")
    contact = {"name": "Partner support"}
    contact |= {"email": settings.contact_email} if settings.contact_email else {}
    urls = {"/auth/": settings.auth, "/.well-known/": settings.auth, "/v1/": settings.base}
    urls |= {"/number-lookup": settings.numbers}

    def at(path: str) -> dict[str, Any]:
        url = next((url for start, url in urls.items() if path.startswith(start)), settings.public)
        return {"servers": [{"url": below(url, root)}]} if url != settings.public else {}

    numbers = {"phone_numbers": {"maxItems": settings.bulk_numbers_max}}
    return {
        "info": {"description": text, "contact": contact, "license": LICENSE},
        "servers": [{"url": here}],
        "paths": {path: at(path) for path in paths},
        "components": {
            "securitySchemes": schemes((below(auth, root) if auth else root) + TOKEN_PATH),
            # Of plans either list may be empty beside the other one.
            "schemas": {"BulkBody": {"properties": numbers}, "LinkPlansBody": {"minProperties": 1}},
            "headers": HEADERS,
            "parameters": PARAMETERS,
        },
        # Unlike the others, this one must not be relative.
        "externalDocs": {"description": "Guides", "url": f"{below(settings.public, root)}/docs"},
    }
