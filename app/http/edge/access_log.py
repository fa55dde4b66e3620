"""One log line and one count per request: the route, never the path or the query."""

import logging
from collections.abc import Callable
from uuid import UUID

METHODS = {"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"}

Count = Callable[[str, str, int, float], None]

logger = logging.getLogger("app.http.access")


def note(  # noqa: PLR0913  # Each is a fact of the line.
    count: Count | None,
    given_method: str,
    route: str,
    status: int,
    *,
    duration_ms: float,
    request_id: str,
    organization_id: UUID | None = None,
) -> None:
    """Log a request whose reply is ready, and count it if there are metrics."""
    method = given_method if given_method in METHODS else "-"
    facts = {
        "method": method,
        "route": route,
        "status": status,
        "duration_ms": duration_ms,
        "request_id": request_id,
        "organization_id": str(organization_id or "-"),
        "command": f"{method} {route}",
    }
    logger.info("answered", extra=facts)
    if count is not None:
        count(method, route, status, duration_ms / 1000)
