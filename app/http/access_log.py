"""One log line per request: the route, never the path or the query, which may hold a number."""

import logging

from flask import Flask, Response, request

from app.http.request_context import request_context

METHODS = {"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"}

logger = logging.getLogger("app.http.access")


def register(app: Flask) -> None:
    """Log every request of an app when its reply is ready."""

    @app.after_request
    def log(response: Response) -> Response:
        context = request_context()
        facts = {
            "method": request.method if request.method in METHODS else "-",
            "route": request.url_rule.rule if request.url_rule else "-",
            "status": response.status_code,
            "duration_ms": context.elapsed_ms(),
            "request_id": context.request_id,
            "organization_id": str(context.organization_id or "-"),
        }
        logger.info("answered", extra=facts)
        return response
