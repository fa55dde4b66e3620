"""The Flask application of one installation; each container has its own, and nothing is global.

PATH_PREFIX and TOKEN_PATHS let clients of another installation move over by changing only a host:
the first stands before every path, the second are more paths of the token operation.
"""

import logging
import re
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any
from wsgiref.types import StartResponse

from flask import Flask, Response
from werkzeug.exceptions import HTTPException
from werkzeug.routing import RequestRedirect

from app.bootstrap.container import Container
from app.http import catalogue as plans
from app.http import docs, health, sandbox
from app.http import tokens as auth
from app.http.accounts import account, deposits
from app.http.accounts import routes as wallet
from app.http.edge import compression, errors, openapi
from app.http.edge.input import BODY_BYTES_MAX
from app.http.edge.operation import Operation
from app.http.edge.problems import TOKEN_PATH
from app.http.edge.request import CURRENT, Given, current_request
from app.http.finance import routes as finance
from app.http.links import routes as links
from app.http.links import traveller
from app.http.lookups import routes as lookups
from app.http.server.loop import Loop
from app.http.webhooks import events
from app.http.webhooks import routes as webhooks
from app.watch.tracing import tracing
from app.watch.trouble import log_traceback

NOWHERE = "/nowhere"  # No route has this path.
NOTIFICATIONS = "/networks/<name>/notifications"  # Networks send them, and no partner.
ENCODED = re.compile("%2f|%5c", re.IGNORECASE)

logger = logging.getLogger(__name__)


class Edge(Flask):
    """Flask, with our context of a request beside its own; views use `app.http.edge.request`."""

    def __init__(self, container: Container) -> None:
        super().__init__(__name__, static_folder=None)
        self.config.update(PROVIDE_AUTOMATIC_OPTIONS=False, MAX_CONTENT_LENGTH=BODY_BYTES_MAX)
        self.url_map.merge_slashes = False  # Otherwise a redirect would have an HTML body.
        self._prefix = container.settings.path_prefix
        self._token_paths = set(container.settings.further_token_paths)
        kind = sandbox.Played if container.settings.sandbox else Given[Any]
        # Returns the context of a request.
        self.open = partial(kind.of, container, self.extensions)
        self.operations: dict[str, Operation] = {}  # By endpoint.
        self.after_request(self._complete)  # The first to be added is called last.

    def wsgi_app(self, environ: dict[str, Any], start_response: StartResponse) -> Iterable[bytes]:
        self._set_path(environ)
        context = self.open(environ)
        before = CURRENT.set(context)
        try:
            return super().wsgi_app(environ, start_response)
        except BaseException:
            if context.resources is not None:
                context.resources.close()
            raise
        finally:
            CURRENT.reset(before)

    def operation_of(self, environ: Mapping[str, Any]) -> Operation | None:
        """Return the operation of a request, None for what is none of ours and for tokens.

        Raises HTTPException for an unknown path or a wrong method.
        """
        method = environ["REQUEST_METHOD"]
        path = {name: environ[name] for name in ("PATH_INFO", "REQUEST_URI")}
        self._set_path(path)
        if path["PATH_INFO"] == TOKEN_PATH:  # Its errors have a shape of their own.
            return None
        named = path["PATH_INFO"].encode("latin-1").decode(errors="replace")
        try:
            rule, _ = self.url_map.bind("").match(named, method, return_rule=True)
        except RequestRedirect:
            return None
        return self.operations.get(rule.endpoint)

    def log_exception(self, exc_info: Any) -> None:
        """Log what an error handler has raised, without its text."""
        log_traceback(logger, exc_info[1])

    def _set_path(self, environ: dict[str, Any]) -> None:
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

    def _complete(self, response: Response) -> Response:
        """Give a reply the headers of every reply, log it and count it."""
        context = CURRENT.get()
        if context.resources is not None:
            response.call_on_close(context.resources.close)
        request, own = current_request(), {name for name, _ in response.headers}
        blocks: Any = response.response
        if not response.is_sequence or sum(map(len, blocks)) >= compression.BYTES_MIN:
            compression.encode(response, request)
        route = request.url_rule.rule if request.url_rule else "-"
        for name, value in context.end(request.method, route, response.status_code):
            if name not in own:
                response.headers.add(name, value)
        return response


def create_app(container: Container) -> Edge:
    """Return the WSGI application; it connects to nothing before a request needs it."""
    app = Edge(container)
    app.extensions[errors.OUTAGES] = errors.Outages(container)
    app.extensions[events.WAITERS] = events.Waiters(container)
    groups = (
        auth.blueprint,
        lookups.blueprint,
        plans.blueprint,
        links.blueprint,
        links.plans_blueprint,
        wallet.blueprint,
        account.blueprint,
        account.clients_blueprint,
        deposits.blueprint,
        finance.blueprint,
        webhooks.blueprint,
        events.blueprint,
        health.blueprint,
        # Elsewhere its paths are as unknown as any other.
        *(sandbox.GROUPS if container.settings.sandbox else ()),
    )
    app.extensions[docs.DOCUMENT] = openapi.register(app, container.settings, groups)
    app.operations = {f"{g.name}.{each.name}": each for g in groups for each in g.operations}
    app.register_blueprint(docs.blueprint)
    app.register_blueprint(traveller.pages)
    # What is in no document.
    app.add_url_rule(NOTIFICATIONS, view_func=links.receive_notification, methods=["POST"])
    app.add_url_rule(f"{auth.METADATA_PATH}/<path:issuer_path>", view_func=auth.server_metadata_of)
    for kind in (HTTPException, Exception):  # flask-smorest has a handler for the first one.
        app.register_error_handler(kind, errors.answer)
    return app


class Bridge:
    """What answers for the container that it uses; requests under way end with the one before."""

    def __init__(self, *, many: bool) -> None:
        self._many = many  # Other processes serve too.

    def use(self, container: Container) -> Callable[[], None]:
        """Answer with this container from now on."""
        app, settings = create_app(container), container.settings
        tracing().watch(app)
        # A lookup always waits if the database (SQLite) is read for each caller, or if the provider
        # is called over a network. A request is traced where Flask answers it.
        waits = not self._many or container.single_lookup.leases is not None or tracing().is_on
        roots = {"", settings.path_prefix}
        started = {
            (method, root + path): each
            for each in lookups.blueprint.operations
            if each.read_on_loop and not waits
            for method, path in [each.line.split()]
            for root in roots
        }
        probes = {root + path: path for path in health.PROBES for root in roots}
        self.loop = Loop(container, app, app, started, probes)
        return lambda: None
