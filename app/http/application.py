"""The Flask application of one installation; each container has its own, and nothing is global."""

import socket
from collections.abc import Callable, Iterable, Sequence
from random import getrandbits
from typing import Any
from uuid import UUID
from wsgiref.types import StartResponse

from flask import Flask
from werkzeug.middleware.proxy_fix import ProxyFix

from app.bootstrap.container import Container
from app.http import catalogue as plans
from app.http import docs, health
from app.http import tokens as auth
from app.http.accounts import account, deposits
from app.http.accounts import routes as wallet
from app.http.edge import errors, openapi
from app.http.edge.front import Front
from app.http.edge.own_replies import LIVEZ, OwnReplies
from app.http.edge.request import count_of
from app.http.edge.request_threads import Pending, Request, RequestThreads
from app.http.edge.wsgi import Edge, token_paths
from app.http.finance import routes as finance
from app.http.links import notifications
from app.http.links import routes as links
from app.http.lookups import ended_jobs
from app.http.lookups import routes as lookups
from app.http.lookups.at_once import LookupsAtOnce
from app.http.webhooks import routes as webhooks


def new_request_id() -> UUID:
    """Return a random id without the system call of `uuid4`, at which threads would switch."""
    return UUID(int=getrandbits(128), version=4)


def create_app(container: Container, new_id: Callable[[], UUID] = new_request_id) -> Flask:
    """Return the WSGI application; it connects to nothing before a request needs it.

    `new_id` makes the ids of requests that bring none.
    """
    app = Edge(container, new_id)
    app.extensions[errors.OUTAGES] = errors.Outages(container)
    app.extensions[ended_jobs.PART] = ended_jobs.EndedJobs()
    groups = (
        auth.blueprint,
        lookups.blueprint,
        plans.blueprint,
        links.blueprint,
        links.plans_blueprint,
        wallet.blueprint,
        account.blueprint,
        deposits.blueprint,
        finance.blueprint,
        webhooks.blueprint,
        health.blueprint,
    )
    app.extensions[docs.DOCUMENT] = openapi.register(app, container.settings, groups)
    app.register_blueprint(docs.blueprint)
    app.register_blueprint(notifications.blueprint)
    app.add_url_rule(f"{auth.METADATA_PATH}/<path:issuer_path>", view_func=auth.server_metadata_of)
    proxies = container.settings.trusted_proxies
    if proxies:
        app.wsgi_app = ProxyFix(app.wsgi_app, x_for=proxies)  # type: ignore[method-assign]  # Flask's documented way.
    return app


class Bridge:
    """The application of the present container; requests under way end with the one before."""

    def __init__(self, container: Container, *, many: bool) -> None:
        self._many = many  # Other processes serve too.
        self.begin(container)

    def begin(self, container: Container) -> Callable[[], None]:
        """Answer with this container from now on."""
        app, settings = create_app(container), container.settings
        # A lookup always waits if the database (SQLite) is read for each caller, or if the provider
        # is called over a network.
        is_worth_trying = self._many and container.single_lookup.leases is None
        paths = {lookups.LOOKUP, settings.path_prefix + lookups.LOOKUP}
        at_once = LookupsAtOnce(container, app.extensions[errors.OUTAGES], paths, new_request_id)
        self._at_once = at_once.begin if is_worth_trying else None
        self._app, self.container = app, container
        return lambda: None

    def __call__(self, environ: dict[str, Any], start_response: StartResponse) -> Iterable[bytes]:
        return self._app(environ, start_response)

    def at_once(self, request: Request) -> Pending | None:
        """Begin a lookup that need not wait; None: a thread answers."""
        return None if self._at_once is None else self._at_once(request)


def create_front(
    bridge: Bridge, listeners: Sequence[socket.socket], *, many: bool, finish_s: float
) -> Front:
    """Return the server of the application on these sockets; `many`: other processes serve too."""
    settings = bridge.container.settings
    replies = OwnReplies(
        lambda: bridge.container.clock(),  # noqa: PLW0108  # The container may change.
        livez={LIVEZ, settings.path_prefix + LIVEZ},
        token_paths=token_paths(settings),
        count=count_of(bridge.container),
    )
    server = listeners[0].getsockname()
    threads = RequestThreads(bridge, server, many=many, at_once=bridge.at_once)
    return Front(listeners, threads, replies, settings.request_read_s, finish_s)
