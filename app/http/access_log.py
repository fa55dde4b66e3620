"""One log line and one count per request: the route, never the path or the query."""

import logging

from app.http.request_context import RequestContext

METHODS = {"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"}

logger = logging.getLogger("app.http.access")


def note(context: RequestContext, status: int) -> None:
    """Log a request whose reply is ready, and count it where there are metrics."""
    given = context.request.method
    method, route = given if given in METHODS else "-", context.route or "-"
    elapsed_ms = context.elapsed_ms()
    facts = {
        "method": method,
        "route": route,
        "status": status,
        "duration_ms": elapsed_ms,
        "request_id": context.request_id,
        "organization_id": str(context.organization_id or "-"),
        "command": f"{method} {route}",
    }
    logger.info("answered", extra=facts)
    if context.container.settings.metrics_port:
        context.container.metrics.answered(method, route, status, elapsed_ms / 1000)
