"""The routes of Flask, with as little around a request as its promises allow.

One log line and one count per request: the route, never the path or the query.
"""

import logging
import time
from collections.abc import Callable, Iterable
from functools import partial
from http import HTTPStatus
from typing import Any, cast
from uuid import UUID
from wsgiref.types import StartResponse

from flask import Flask, Response
from werkzeug.wrappers import Request

from app.bootstrap.container import Container
from app.http.edge.calling import POSTPONE, Postpone
from app.http.edge.errors import answer
from app.http.edge.input import BODY_BYTES_MAX
from app.http.edge.later import Later
from app.http.edge.request import CURRENT, RequestContext, is_request_id
from domain.at_once import at_once

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


View = Callable[[], Response | Later]


class _Request(Request):
    max_content_length = BODY_BYTES_MAX


class Edge(Flask):
    """An application of Flask without its hooks, signals, sessions, proxies and coroutines.

    Nothing of ours uses them, and together they cost more than all that a lookup does here: see
    `app.http.edge.request` for what a view asks instead of `flask.request` and `flask.g`.
    """

    def __init__(self, container: Container, new_id: Callable[[], UUID]) -> None:
        super().__init__(__name__, static_folder=None)
        self.config["PROVIDE_AUTOMATIC_OPTIONS"] = False
        self.url_map.merge_slashes = False  # A redirect would have a body in HTML.
        self._urls = self.url_map.bind("localhost")
        self._container = container
        self._new_id = new_id

    def wsgi_app(self, environ: dict[str, Any], start_response: StartResponse) -> Iterable[bytes]:
        """Answer a request, log and count it.

        Under POSTPONE a server may give what takes a command and what replies to its outcome: then
        nothing here waits. It raises WouldWait where it would have to, before anything happened.
        """
        given = environ.get("HTTP_X_REQUEST_ID", "")
        request_id = given if is_request_id(given) else str(self._new_id())
        postpone: Postpone | None = environ.get(POSTPONE)
        request = _Request(environ, populate_request=False)  # In no circle: all goes at once.
        context = RequestContext(
            self._container,
            self.extensions,
            request,
            request_id,
            time.perf_counter(),
            at_once=postpone is not None,
        )
        view = partial(self._call_view, context)
        if postpone is None:
            return self._finish(context, view, start_response)
        with at_once():
            return self._finish(context, view, start_response)

    def _finish(
        self, context: RequestContext, view: View, start_response: StartResponse
    ) -> Iterable[bytes]:
        """Reply with what a view returns, or postpone it."""
        before = CURRENT.set(context)
        try:
            response = _answer(view)
            if isinstance(response, Later):
                resume = partial(self._finish, context, response.end, start_response)
                context.request.environ[POSTPONE](response.begun, resume)
                return ()
            return _end(context, response, start_response)
        finally:
            CURRENT.reset(before)

    def _call_view(self, context: RequestContext) -> Response | Later:
        path = context.request.environ["PATH_INFO"].encode("latin-1").decode(errors="replace")
        rule, arguments = self._urls.match(path, context.request.method, return_rule=True)
        context.route = rule.rule
        return cast("Response | Later", self.view_functions[rule.endpoint](**arguments))


def _answer(view: View) -> Response | Later:
    """Call a view; whatever is raised becomes a reply."""
    try:
        return view()
    except Exception as error:  # noqa: BLE001  # There is an answer to every one.
        return answer(error)


def _end(
    context: RequestContext, response: Response, start_response: StartResponse
) -> Iterable[bytes]:
    headers = response.headers
    headers.add("X-Request-Id", context.request_id)
    headers.add("X-Content-Type-Options", "nosniff")
    if "cache-control" not in headers.keys(lower=True):
        headers.add("Cache-Control", "no-store")
    note(context, response.status_code)
    request = context.request
    if response.status_code != HTTPStatus.OK or request.method == "HEAD":
        return response(request.environ, start_response)  # Its headers may need more than this.
    start_response(response.status, headers.to_wsgi_list())
    return cast("Iterable[bytes]", response.response)
