"""The Flask application of the finance view: access, headers of every reply, and errors."""

import logging
from collections.abc import Callable
from datetime import date

from flask import Flask, Response, redirect, render_template, request
from sqlalchemy.exc import DBAPIError
from sqlalchemy.exc import TimeoutError as PoolTimeout
from werkzeug.exceptions import Forbidden, HTTPException, MisdirectedRequest, ServiceUnavailable

from app.finance import words
from app.finance.access import Access, is_loopback
from app.finance.pages import Pages, query
from app.http.edge.media import JINJA
from app.watch.trouble import NOT_MIGRATED, log_traceback, trouble_of
from projections.finance.figures import Figures

# No script runs, nothing is loaded from another host, and no other page shows ours in a frame.
POLICY = (
    "default-src 'none'; style-src 'self'; img-src 'self' data:; form-action 'self'; "
    "base-uri 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}
OPEN, STATIC = "open_once", "static"
AWAY = "The database does not answer. Try again in a moment."
OLD = f"This release is not at home yet: {NOT_MIGRATED}."

logger = logging.getLogger(__name__)


def create_application(
    figures: Figures, access: Access, today: Callable[[], date], currency: str
) -> Flask:
    """Return the WSGI application; it connects to nothing before a page needs it."""
    app = Flask(__name__)
    app.jinja_options = JINJA
    app.config["MAX_CONTENT_LENGTH"] = 0  # Nothing here takes a body.
    for each in (words.money, words.whole, words.kind, words.topic, words.moment):
        app.jinja_env.filters[each.__name__] = each
    for function in (words.decimals_of, words.decimals_in, query):
        app.jinja_env.globals[function.__name__] = function
    app.jinja_env.globals["currency"] = currency
    app.before_request(lambda: _let_in(access))
    app.after_request(_complete)
    app.register_error_handler(Exception, _on_error)
    app.add_url_rule("/open/<token>", OPEN, lambda token: _open(access, token))
    Pages(figures, today).route(app)
    return app


def _let_in(access: Access) -> None:
    """Refuse requests without the cookie, and those under a host name that is not ours."""
    if not is_loopback(request.headers.get("Host")):
        raise MisdirectedRequest
    is_public = request.endpoint in {OPEN, STATIC}
    if not is_public and not access.lets_in(request.cookies.get(access.cookie_name)):
        raise Forbidden


def _open(access: Access, token: str) -> Response:
    known = access.lets_in(request.cookies.get(access.cookie_name))
    if request.method != "GET" or not (known or access.spend(token)):
        raise Forbidden
    reply = redirect("/", 303)
    reply.set_cookie(access.cookie_name, access.cookie, httponly=True, samesite="Strict")
    assert isinstance(reply, Response)
    return reply


def _complete(reply: Response) -> Response:
    for name, value in HEADERS.items():
        reply.headers.setdefault(name, value)
    return reply


def _on_error(error: Exception) -> tuple[str, int]:
    """Show what went wrong. The log gets the place of a bug in our code, but never a value."""
    if isinstance(error, DBAPIError | PoolTimeout):
        is_old = trouble_of(error, "") == NOT_MIGRATED
        said = NOT_MIGRATED if is_old else "the database does not answer"
        logger.error("%s: %s", said, type(error).__name__)
        error = ServiceUnavailable(OLD if is_old else AWAY)
    if not isinstance(error, HTTPException):
        log_traceback(logger, error)
        error = HTTPException("A fault of this page; the log says where.")
        error.code = 500
    status = error.code or 500
    return render_template("error.html", status=status, said=error.description), status
