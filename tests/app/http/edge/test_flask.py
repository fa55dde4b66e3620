"""Flask is Flask: what its extensions use works for every request that goes to it."""

from typing import Any

import pytest
from flask import Flask, Response, current_app, g, request, request_finished
from werkzeug.exceptions import NotFound

from app.http.application import create_app
from domain.errors import Refused
from tests.app.http.service import Service

HEADER = "X-Traced"


class Tracer:
    """An extension as they are written: it notes what becomes of each request."""

    def __init__(self, app: Flask) -> None:
        self.seen: list[tuple[Any, ...]] = []
        app.extensions["tracer"] = self
        app.before_request(self._begin)
        app.after_request(self._complete)
        app.teardown_request(lambda error: self.seen.append(("teardown", error)))
        app.teardown_appcontext(lambda error: self.seen.append(("end", error)))
        request_finished.connect(self._finished, app)

    def _begin(self) -> None:
        g.began = request.path
        rule = request.url_rule.rule if request.url_rule else None
        self.seen.append(("begin", request.method, rule, current_app.extensions["tracer"] is self))

    def _complete(self, response: Response) -> Response:
        self.seen.append(("complete", g.began, response.status_code))
        response.headers[HEADER] = request.endpoint or "-"
        return response

    def _finished(self, _: Flask, response: Response) -> None:
        self.seen.append(("finished", response.status_code))


def test_hooks_and_signals_see_every_request_and_its_reply(service: Service) -> None:
    app, tenant = create_app(service.container), service.tenant()
    tracer, client = Tracer(app), app.test_client()
    for method, path, status, rule in (
        ("GET", "/v1/wallet", 200, "/v1/wallet"),
        ("GET", "/v1/links/x", 404, "/v1/links/<identifier>"),
        ("GET", "/nowhere", 404, None),
        ("DELETE", "/v1/wallet", 405, None),
        ("POST", "/number-lookup", 422, "/number-lookup"),
    ):
        tracer.seen.clear()
        reply = client.open(path, method=method, headers=tenant.headers)
        assert reply.status_code == status
        begin, complete = ("begin", method, rule, True), ("complete", path, status)
        ends = [("finished", status), ("teardown", None), ("end", None)]
        assert tracer.seen == [begin, complete, *ends]
        assert HEADER in reply.headers
        assert reply.headers["X-Request-Id"] == reply.json["meta"]["request_id"]


class Planned(Exception):
    """Raised by a view of an extension."""


def test_views_hooks_and_error_handlers_of_others_stand_beside_ours(service: Service) -> None:
    app = create_app(service.container)

    @app.route("/theirs")
    def theirs() -> str:
        if "fail" in request.args:
            raise Planned
        if "break" in request.args:
            message = "secret"
            raise ValueError(message)
        if "refuse" in request.args:
            raise NotFound
        return f"{request.args['a']} {request.headers['X-B']}"

    @app.before_request
    def stop() -> Response | None:
        return Response("stopped", 418) if "stop" in request.args else None

    @app.errorhandler(Planned)
    def answer(_: Planned) -> tuple[str, int]:
        return "planned", 409

    client = app.test_client()
    assert client.get("/theirs?a=1", headers={"X-B": "2"}).text == "1 2"
    stopped = client.get("/v1/wallet?stop=1")
    assert (stopped.status_code, stopped.text) == (418, "stopped")
    assert stopped.headers["X-Content-Type-Options"] == "nosniff"
    assert client.get("/theirs?fail=1").status_code == 409
    refused, broken = client.get("/theirs?refuse=1"), client.get("/theirs?break=1")
    assert (refused.status_code, refused.json["error"]["code"]) == (404, "NOT_FOUND")
    assert (broken.status_code, broken.json["error"]["code"]) == (500, "INTERNAL_ERROR")


def test_an_error_handler_that_fails_is_a_bug_and_reveals_nothing(
    service: Service, caplog: pytest.LogCaptureFixture
) -> None:
    app = create_app(service.container)

    def fail(_: Refused) -> Response:
        message = "secret"
        raise ValueError(message)

    app.register_error_handler(Refused, fail)
    reply = app.test_client().get("/v1/wallet")
    assert (reply.status_code, reply.json["error"]["code"]) == (500, "INTERNAL_ERROR")
    assert reply.headers["X-Request-Id"]
    assert "ValueError raised in" in caplog.text
    assert "secret" not in caplog.text
