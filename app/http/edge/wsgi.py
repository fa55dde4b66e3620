"""Flask's routes, with as little work around a request as possible.

PATH_PREFIX and TOKEN_PATHS let clients of another installation move over by changing only a host:
the first stands before every path, the second are more paths of the token operation.
"""

import re
import time
from collections.abc import Callable, Iterable
from http import HTTPStatus
from typing import Any, cast
from uuid import UUID
from wsgiref.types import StartResponse

from flask import Flask, Response
from werkzeug.wrappers import Request
from werkzeug.wsgi import ClosingIterator

from app.bootstrap.container import Container
from app.http.edge import compression
from app.http.edge.errors import answer
from app.http.edge.input import BODY_BYTES_MAX
from app.http.edge.oauth_errors import TOKEN_PATH
from app.http.edge.request import (
    CURRENT,
    RequestContext,
    count_of,
    note_answer,
    request_id_of,
)
from app.settings import Settings

NOWHERE = "/nowhere"  # No route has this path.
ENCODED = re.compile("%2f|%5c", re.IGNORECASE)
# To read 64 KiB of one of these takes a tenth of a second; nobody needs so many words.
SHORT_HEADERS = ("CONTENT_TYPE", "HTTP_ACCEPT", "HTTP_ACCEPT_ENCODING", "HTTP_PREFER")
SHORT_HEADER_CHARS_MAX = 4096


class _Request(Request):
    max_content_length = BODY_BYTES_MAX


def token_paths(settings: Settings) -> set[str]:
    """Return every path of the token operation."""
    known = {TOKEN_PATH, *settings.further_token_paths}
    return known | {settings.path_prefix + path for path in known}


class Edge(Flask):
    """A Flask application without hooks, signals, sessions, proxies and coroutines.

    Nothing here uses them, and together they cost more than all that the edge does for a lookup. In
    place of `flask.request` and `flask.g` views use `app.http.edge.request`.
    """

    def __init__(self, container: Container, new_id: Callable[[], UUID]) -> None:
        super().__init__(__name__, static_folder=None)
        self.config["PROVIDE_AUTOMATIC_OPTIONS"] = False
        self.url_map.merge_slashes = False  # Otherwise a redirect would have an HTML body.
        self._urls = self.url_map.bind("localhost")
        self._container = container
        self._prefix = container.settings.path_prefix
        self._token_paths = set(container.settings.further_token_paths)
        self._new_id = new_id
        self._count = count_of(container)

    def wsgi_app(self, environ: dict[str, Any], start_response: StartResponse) -> Iterable[bytes]:
        """Answer a request, log it and count it."""
        self._find_path(environ)
        for name in SHORT_HEADERS:
            if len(environ.get(name, "")) > SHORT_HEADER_CHARS_MAX:
                del environ[name]  # As if it had not been sent.
        request_id = request_id_of(environ.get("HTTP_X_REQUEST_ID", ""), self._new_id)
        # `populate_request` would make a reference cycle; without it memory is freed at once.
        request = _Request(environ, populate_request=False)
        context = RequestContext(
            self._container, self.extensions, request, request_id, time.perf_counter()
        )
        before = CURRENT.set(context)
        try:
            blocks = self._end(context, self._answer(context), start_response)
        except BaseException:
            if context.held is not None:
                context.held.close()
            raise
        finally:
            CURRENT.reset(before)
        return blocks if context.held is None else ClosingIterator(blocks, context.held.close)

    def _find_path(self, environ: dict[str, Any]) -> None:
        """Turn the path of a request into that of its operation.

        A path with an encoded slash or backslash leads nowhere, because once decoded it could be
        the path of an operation that the client did not mean. Nor does one that begins with two
        slashes, of which the router would drop the first.
        """
        path = environ["PATH_INFO"]
        if ENCODED.search(environ.get("REQUEST_URI", "").partition("?")[0]):
            environ["PATH_INFO"] = NOWHERE
        elif path in self._token_paths:
            environ["PATH_INFO"] = TOKEN_PATH
        elif self._prefix and path.startswith(f"{self._prefix}/"):
            below = path.removeprefix(self._prefix)
            environ["SCRIPT_NAME"] = self._prefix
            environ["PATH_INFO"] = TOKEN_PATH if below in self._token_paths else below
        if environ["PATH_INFO"].startswith("//"):
            environ["PATH_INFO"] = NOWHERE

    def _answer(self, context: RequestContext) -> Response:
        """Call a view; whatever is raised becomes a reply."""
        try:
            return self._call_view(context)
        except Exception as error:  # noqa: BLE001  # There is an answer to every error.
            return answer(error)

    def _call_view(self, context: RequestContext) -> Response:
        path = context.request.environ["PATH_INFO"].encode("latin-1").decode(errors="replace")
        rule, arguments = self._urls.match(path, context.request.method, return_rule=True)
        context.route = rule.rule
        return cast("Response", self.view_functions[rule.endpoint](**arguments))

    def _end(
        self, context: RequestContext, response: Response, start_response: StartResponse
    ) -> Iterable[bytes]:
        headers = response.headers
        headers.add("X-Request-Id", context.request_id)
        headers.add("X-Content-Type-Options", "nosniff")
        if context.admission is not None:
            headers.extend(context.admission.headers())
        if "cache-control" not in headers.keys(lower=True):
            headers.add("Cache-Control", "no-store")
        request = context.request
        compression.encode(response, request)
        note_answer(
            self._count,
            request.method,
            context.route or "-",
            response.status_code,
            duration_ms=context.elapsed_ms(),
            request_id=context.request_id,
            organization_id=context.organization_id,
        )
        if response.status_code != HTTPStatus.OK or request.method == "HEAD":
            # The headers of such a reply may depend on the request.
            return response(request.environ, start_response)
        start_response(response.status, headers.to_wsgi_list())
        return cast("Iterable[bytes]", response.response)
