"""Whether a reply shows what is old: read models are waited for, and `meta` says if in vain."""

from flask import has_request_context

from app.container import Container
from app.freshness import wait_until_projected
from app.http.request_context import request_context


def wait_for(parts: Container, name: str) -> bool:
    """Let a read model pass what the caller may have been told already; note if it stays behind."""
    reached = wait_until_projected(parts.log, parts.views, parts.positions, [name])
    if not reached:
        note_age(parts, name)
    return reached


def note_age(parts: Container, name: str) -> None:
    """Let the reply say so if a read model that it shows is stale."""
    if has_request_context():
        stale, as_of = parts.freshness.is_stale(name)
        request_context().stale, request_context().as_of = stale, as_of
