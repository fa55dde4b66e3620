"""The age of what a reply shows: reads wait for a read model; `meta` tells if it stays behind."""

from app.bootstrap.container import Container
from app.http.edge.request import CURRENT
from projections.engine.freshness import wait_until_projected


def wait_for(parts: Container, name: str) -> bool:
    """Wait for a read model to pass what the caller may know already; note if it stays behind."""
    reached = wait_until_projected(parts.log, parts.views, parts.positions, [name])
    if not reached:
        note_age(parts, name)
    return reached


def note_age(parts: Container, name: str) -> None:
    """Make the reply say so if a read model that it shows is stale."""
    context = CURRENT.get(None)
    if context is not None:
        context.stale, context.as_of = parts.freshness.is_stale(name)
