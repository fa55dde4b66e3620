"""The OpenAPI document and the page that shows it; the page loads nothing from other hosts."""

from pathlib import Path

from flask import Blueprint, Response

from app.http.edge.request import current_request, request_context
from domain.errors import NotFound

STATIC = Path(__file__).parent / "static"
TYPES = {
    "docs.js": "text/javascript",
    "swagger-ui.css": "text/css",
    "swagger-ui-bundle.js": "text/javascript",
}
DOCUMENT = "openapi_document"
REVALIDATED = "no-cache"
KEPT = "public, max-age=3600"

# The page may run and load only what we ship, although it shows only our own document.
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)

blueprint = Blueprint("docs", __name__)


@blueprint.get("/openapi.json")
def openapi_document() -> Response:
    """Return the OpenAPI document, which was made together with the app."""
    document = request_context().parts[DOCUMENT][current_request().script_root]
    return _static(document, "application/json", REVALIDATED)


@blueprint.get("/docs")
def docs() -> Response:
    """Return the page that shows the document."""
    response = _static((STATIC / "docs.html").read_bytes(), "text/html", REVALIDATED)
    response.headers["Content-Security-Policy"] = POLICY
    return response


@blueprint.get("/docs/<name>")
def asset(name: str) -> Response:
    """Return a file of the page."""
    if name not in TYPES:
        raise NotFound
    return _static((STATIC / name).read_bytes(), TYPES[name], KEPT)


def _static(content: bytes, media_type: str, cache_control: str) -> Response:
    response = Response(content, mimetype=media_type)
    response.headers["Cache-Control"] = cache_control
    response.add_etag()
    response.make_conditional(current_request())
    return response
