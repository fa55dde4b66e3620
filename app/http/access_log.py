"""One log line and one count per request: the route, never the path or the query."""

import logging

from flask import Flask, Response, current_app, request

from app.http.request_context import request_context

METHODS = {"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"}

METRICS = "metrics"

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
        facts["command"] = f"{facts['method']} {facts['route']}"
        logger.info("answered", extra=facts)
        metrics = current_app.extensions.get(METRICS)
        if metrics is not None:
            seconds = context.elapsed_ms() / 1000
            metrics.answered(facts["method"], facts["route"], response.status_code, seconds)
        return response
