"""Headers that stand on every reply."""

from flask import Flask, Response

from app.http.request_context import request_context


def register(app: Flask) -> None:
    """Add them; `no-store` only where an operation has not said otherwise."""

    @app.after_request
    def add(response: Response) -> Response:
        headers = response.headers
        headers["X-Request-Id"] = request_context().request_id
        headers["X-Content-Type-Options"] = "nosniff"
        headers.setdefault("Cache-Control", "no-store")
        return response
