"""Whether lookups can be served, and the probes of whoever runs the processes."""

import logging

from flask import Response

from app.http.blueprint import Blueprint
from app.http.envelope import format_time, json_response
from app.http.operation import public
from app.http.own_replies import LIVEZ
from app.http.request_context import container
from app.http.schemas.health import Health, Liveness, Readiness
from app.known_keys import missing_keys

blueprint = Blueprint("Health", __name__, description="Whether the service can serve.")
logger = logging.getLogger(__name__)


@blueprint.route("/number-lookup/health", methods=["GET"])
@public()
@blueprint.alt_response(200, schema=Health, description="Lookups can be served.")
@blueprint.alt_response(503, schema=Health, description="Lookups cannot be served; `ok` is false.")
def number_lookup_health() -> Response:
    """Tell whether lookups can be served.

    They cannot while the event log is out of reach, while lookups are disabled for everybody, and
    while the lookup provider does not answer.
    """
    parts = container()
    ok = parts.settings.number_lookup_enabled and _reaches_log() and parts.provider.is_up()
    body = {"ok": ok, "timestamp": format_time(parts.clock())}
    return json_response(body, 200 if ok else 503)


@blueprint.route(LIVEZ, methods=["GET"])
@public()
@blueprint.alt_response(200, schema=Liveness, description="The process answers.")
def livez() -> Response:
    """Tell whether the process answers.

    It asks nothing else: restart a process only when this fails.
    """
    return json_response({"ok": True})


@blueprint.route("/readyz", methods=["GET"])
@public()
@blueprint.alt_response(200, schema=Readiness, description="The process can serve.")
@blueprint.alt_response(503, schema=Readiness, description="It cannot; the body says why.")
def readyz() -> Response:
    """Tell whether the process can serve.

    It can when the database is reached, its tables are made and the signing keys can be read. A
    read model that has stopped is named but does not count: every process would see the same, and
    old reads beat none.
    """
    database = _reaches_log()
    migrated, failed = _read_models() if database else (False, [])
    keys = missing_keys(container()) is None
    body = {
        "ok": database and migrated and keys,
        "database": database,
        "migrated": migrated,
        "failed_read_models": failed,
        "signing_keys": keys,
    }
    return json_response(body, 200 if body["ok"] else 503)


def _reaches_log() -> bool:
    try:
        container().log.head()
    except Exception as error:  # noqa: BLE001 - whatever it is, the log cannot be reached.
        logger.warning("the log cannot be reached: %s", type(error).__name__)
        return False
    return True


def _read_models() -> tuple[bool, list[str]]:
    """Return whether every read model is made by this version, and those that have failed."""
    parts = container()
    try:
        known = parts.positions.all(parts.views)
    except Exception as error:  # noqa: BLE001 - a table that is missing, above all.
        logger.warning("the read models cannot be read: %s", type(error).__name__)
        return False, []
    places = [known.get(model.name) for model in parts.models]
    versions = [model.version for model in parts.models]
    migrated = [place.version for place in places if place is not None] == versions
    return migrated, [place.name for place in places if place is not None and place.failure]
