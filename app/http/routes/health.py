"""Whether lookups can be served, and the probes of whoever runs the processes."""

from flask import Response

from app.http.blueprint import Blueprint
from app.http.envelope import format_time, json_response
from app.http.operation import public
from app.http.outages import outages
from app.http.own_replies import LIVEZ
from app.http.request_context import container
from app.http.schemas.health import Health, Liveness, Readiness
from app.known_keys import missing_keys
from app.persistence.trouble import NOT_MIGRATED

blueprint = Blueprint("Health", __name__, description="Whether the service can serve.")


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
    ok = parts.settings.number_lookup_enabled and _missing_log() is None and parts.provider.is_up()
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
    away, no_keys = _missing_log(), missing_keys(container())
    migrated, failed, missing = (False, [], [away]) if away is not None else _read_models()
    missing += [no_keys] if no_keys is not None else []
    body = {
        "ok": not missing,
        "database": away is None,
        "migrated": migrated,
        "missing": missing,
        "failed_read_models": failed,
        "signing_keys": no_keys is None,
        "clock_offset_seconds": round(container().time.offset_s, 3),
    }
    return json_response(body, 200 if body["ok"] else 503)


def _missing_log() -> str | None:
    """Say why the log cannot be reached; None when it can."""
    try:
        container().log.head()
    except Exception as error:  # noqa: BLE001 - whatever it is, the log cannot be reached.
        return outages().note(error)
    return None


def _read_models() -> tuple[bool, list[str], list[str]]:
    """Return whether all read models are made by this version, which have failed, what is wrong."""
    parts = container()
    try:
        known = parts.positions.all(parts.views)
    except Exception as error:  # noqa: BLE001 - a table that is missing, above all.
        return False, [], [outages().note(error)]
    places = [known.get(model.name) for model in parts.models]
    versions = [model.version for model in parts.models]
    migrated = [place.version for place in places if place is not None] == versions
    failed = [place.name for place in places if place is not None and place.failure]
    return migrated, failed, [] if migrated else [NOT_MIGRATED]
